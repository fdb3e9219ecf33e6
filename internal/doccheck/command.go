package doccheck

import (
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/elastic-training/terraform-provider-elastic/internal/migrate/elasticdl"
)

// Command is a command line that a document tells people to type, or speaks of.
type Command struct {
	Where       string // file and line
	Folder      string // from which it is run, from the root of the repository
	Program     string // without the folder bin/
	Environment []string
	Arguments   []string
	Whole       bool // as it is typed; what is only spoken of may lack arguments
}

// String is the command line without its quotes.
func (c Command) String() string {
	return strings.Join(slices.Concat(c.Environment, []string{c.Program}, c.Arguments), " ")
}

// Commands are the command lines of some programs: in blocks for a shell, whole, and in the text. One whose output is
// exported, export $(…), is one too. The error names every line that no shell would take.
func (d Document) Commands(programs ...string) ([]Command, error) {
	starts := regexp.MustCompile(`^((?:\w+=\S*\s+)*)(?:bin/)?(` + strings.Join(programs, "|") + `)(?:\s|$)`)
	var found []Command
	var errs []error
	add := func(p Piece, whole bool) {
		m := starts.FindStringSubmatch(p.Text)
		if m == nil {
			return
		}
		c := Command{Where: fmt.Sprintf("%s:%d", d.Path, p.Line), Folder: ".", Environment: strings.Fields(m[1]), Program: m[2], Whole: whole}
		if strings.HasPrefix(d.Path, "examples/") {
			c.Folder = path.Dir(d.Path) // there a README is read; all else is typed in the root
		}
		words, err := elasticdl.Words(protected.Replace(p.Text))
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %s: %w", c.Where, p.Text, err))
			return
		}
		c.Arguments = words[len(c.Environment)+1:]
		found = append(found, c)
	}
	for _, block := range d.Blocks() {
		if slices.Contains([]string{"sh", "shell", "bash", "console"}, block.Language) {
			for _, line := range commandLines(block) {
				for part := range strings.SplitSeq(line.Text, pipe) {
					add(Piece{Line: line.Line, Text: strings.TrimSpace(part)}, true)
				}
			}
		}
	}
	for _, s := range d.Spans() {
		add(s, false)
	}
	return found, errors.Join(errs...)
}

// pipe is between the commands of a pipeline, each of which is a command line.
const pipe = " | "

// protected keeps what a shell would replace, so that words can be split without one.
var protected = strings.NewReplacer("$", `\$`, "*", `\*`, "?", `\?`, "[", `\[`)

var exported = regexp.MustCompile(`(?s)^export \$\((.*)\)\s*(?:#.*)?$`)

// commandLines are a block's command lines; a backslash at the end of a line continues it.
func commandLines(block Piece) []Piece {
	var found []Piece
	continued := false
	for i, line := range strings.Split(block.Text, "\n") {
		if continued {
			found[len(found)-1].Text += "\n" + line
		} else {
			found = append(found, Piece{Line: block.Line + i, Text: strings.TrimPrefix(line, "$ ")})
		}
		continued = strings.HasSuffix(line, `\`)
	}
	for i := range found {
		found[i].Text = exported.ReplaceAllString(found[i].Text, "$1")
	}
	return found
}

// CheckAgainst reports why a program with this command tree would refuse the command line, going as far as cobra does
// before it runs a command.
func (c Command) CheckAgainst(tree *cobra.Command) error {
	tree.SetOut(io.Discard)
	tree.InitDefaultHelpCmd()
	tree.InitDefaultCompletionCmd(c.Arguments...)
	command, rest, err := tree.Find(c.Arguments)
	if err != nil {
		return err
	}
	command.InitDefaultHelpFlag()
	command.InitDefaultVersionFlag()
	if err := command.ParseFlags(rest); err != nil {
		return err
	}
	flags := command.Flags()
	switch {
	case command.HasSubCommands() && flags.NArg() > 0:
		return fmt.Errorf("%s has no command %s", command.CommandPath(), flags.Arg(0))
	case !c.Whole || flags.Changed("help") || flags.Changed("version"):
		return nil
	}
	return errors.Join(command.ValidateArgs(flags.Args()), command.ValidateRequiredFlags(), command.ValidateFlagGroups())
}
