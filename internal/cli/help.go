package cli

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// Width is that of the help, in columns.
const Width = 88

// exitKey begins the annotations that hold the meanings of exit codes.
const exitKey = "exit code "

// Exits documents an exit code that a command ends with besides Failed and Usage, or what 0 means for it.
func Exits(c *cobra.Command, code int, meaning string) {
	if c.Annotations == nil {
		c.Annotations = map[string]string{}
	}
	c.Annotations[exitKey+strconv.Itoa(code)] = meaning
}

// exitCodes are those of a command, with their meanings.
func exitCodes(c *cobra.Command) map[int]string {
	codes := map[int]string{0: "done", Failed: "failed", Usage: "invalid command line"}
	for key, meaning := range c.Annotations {
		if digits, ok := strings.CutPrefix(key, exitKey); ok {
			code, err := strconv.Atoi(digits)
			must(err)
			codes[code] = meaning
		}
	}
	return codes
}

// helpName is that of cobra's own command, `PROGRAM help COMMAND`.
const helpName = "help"

// configureHelp has cobra's command refuse what there is no help about.
func configureHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	for _, c := range root.Commands() {
		if c.Name() != helpName {
			continue
		}
		c.Short = "Show help for a command"
		c.Long = "Show help for a command, as `" + root.Name() + " COMMAND --help` does."
		c.Args = func(c *cobra.Command, args []string) error {
			if found, rest, _ := root.Find(args); len(rest) > 0 {
				return usageProblem(c, fmt.Errorf("unknown command %q", rest[0]), rest[0], commandNames(found), "")
			}
			return nil
		}
	}
}

// usage prints what comes below a command's description. It is cobra's own with these differences: a command that only
// leads to others has no line as if it did something, nothing is wider than Width, and exit codes are listed.
func usage(c *cobra.Command) error {
	var b strings.Builder
	b.WriteString("Usage:\n")
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "  %s [command]\n", c.CommandPath())
	} else {
		b.WriteString(wrap(c.UseLine(), "  ", "      "))
	}
	if c.HasExample() {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", c.Example)
	}
	writeCommands(&b, c)
	if c.HasAvailableLocalFlags() {
		b.WriteString("\nFlags:\n" + c.LocalFlags().FlagUsagesWrapped(Width))
	}
	if c.HasAvailableInheritedFlags() {
		b.WriteString("\nGlobal flags:\n" + c.InheritedFlags().FlagUsagesWrapped(Width))
	}
	b.WriteString("\nExit codes:\n")
	codes := exitCodes(c)
	for _, code := range slices.Sorted(maps.Keys(codes)) {
		b.WriteString(wrap(codes[code], fmt.Sprintf("  %-5d", code), "       "))
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n`%s [command] --help` shows help for a command.\n", c.CommandPath())
	}
	_, err := fmt.Fprint(c.OutOrStderr(), b.String())
	return err
}

// writeCommands lists the commands below c, group by group, and what is in no group last.
func writeCommands(b *strings.Builder, c *cobra.Command) {
	title := "Commands:"
	for _, group := range c.Groups() {
		writeGroup(b, c, group.ID, group.Title)
		title = "Other commands:"
	}
	writeGroup(b, c, "", title)
}

func writeGroup(b *strings.Builder, c *cobra.Command, id, title string) {
	first := true
	for _, below := range c.Commands() {
		if below.GroupID != id || !below.IsAvailableCommand() && below.Name() != helpName {
			continue
		}
		if first {
			fmt.Fprintf(b, "\n%s\n", title)
			first = false
		}
		fmt.Fprintf(b, "  %-*s  %s\n", below.NamePadding(), below.Name(), below.Short)
	}
}

// wrap sets words into lines of no more than Width columns, the first after one indent and the others after another.
func wrap(text, first, others string) string {
	var b strings.Builder
	line := first
	empty := true
	for _, word := range strings.Fields(text) {
		if !empty && len([]rune(line))+1+len([]rune(word)) > Width {
			b.WriteString(line + "\n")
			line, empty = others, true
		}
		if !empty {
			line += " "
		}
		line += word
		empty = false
	}
	return b.String() + line + "\n"
}
