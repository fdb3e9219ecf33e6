// Package clitest checks that programs follow the conventions of package cli: help that fits a terminal, examples that
// are valid command lines, and the same names for the same flags. It also checks shell completions.
package clitest

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
)

// agreed are the flags that more than one program has, or is likely to have one day: what they are called, and what
// they take.
var agreed = map[string]struct{ shorthand, kind, meaning string }{
	"output":     {"o", "string", "where what is made is written: a file or a directory"},
	"json":       {"", "bool", "print the result as JSON"},
	"format":     {"", "string", "the form of lines that are printed"},
	"quiet":      {"q", "bool", "print the result only"},
	"seed":       {"", "uint64", "what random numbers are drawn from"},
	"log-level":  {"", "string", "debug, info, warn or error"},
	"dir":        {"", "string", "the directory that the program itself keeps its state in"},
	"filename":   {"f", "string", "a file to read, as kubectl has it"},
	"follow":     {"f", "bool", "continue as more is written, as kubectl logs does"},
	"previous":   {"p", "bool", "the run before, as kubectl logs has it"},
	"container":  {"c", "string", "of a pod, as kubectl has it"},
	"namespace":  {"n", "string", "of Kubernetes"},
	"kubeconfig": {"", "string", "a file, as kubectl has it"},
	"context":    {"", "string", "in the kubeconfig, as kubectl has it"},
	"timeout":    {"", "duration", "how long others may take to answer"},
	"help":       {"h", "bool", ""},
	"version":    {"v", "bool", ""},
}

// instead are other words for what is agreed.
var instead = map[string]string{
	"out": "output", "outdir": "output", "output-dir": "output", "output-file": "output", "report": "output", "dest": "output",
	"silent": "quiet", "no-progress": "quiet", "verbose": "log-level", "debug": "log-level", "level": "log-level",
	"as-json": "json", "random-seed": "seed", "state-dir": "dir", "directory": "dir", "file": "filename", "ns": "namespace",
	"wait": "timeout", "deadline": "timeout",
}

// Manners checks every command of a program.
func Manners(t *testing.T, newRoot func() *cobra.Command) {
	t.Helper()
	root := newRoot()
	kinds := map[string]string{} // of each flag's name, so that one name is one thing
	for _, c := range all(root) {
		t.Run(c.CommandPath(), func(t *testing.T) {
			checkTexts(t, c)
			checkExample(t, root, c)
			checkHelp(t, newRoot(), c)
			c.LocalFlags().VisitAll(func(f *pflag.Flag) {
				checkFlag(t, f)
				if kind := f.Value.Type() + " -" + f.Shorthand; kinds[f.Name] == "" {
					kinds[f.Name] = kind
				} else if kinds[f.Name] != kind {
					t.Errorf("--%s is %s here and %s elsewhere", f.Name, kind, kinds[f.Name])
				}
			})
		})
	}
}

// all are the commands that people see, but for cobra's own `help`.
func all(c *cobra.Command) []*cobra.Command {
	commands := []*cobra.Command{c}
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() && below.Name() != "help" {
			commands = append(commands, all(below)...)
		}
	}
	return commands
}

func checkTexts(t *testing.T, c *cobra.Command) {
	t.Helper()
	first, _ := utf8.DecodeRuneInString(c.Short)
	if !unicode.IsUpper(first) || strings.HasSuffix(c.Short, ".") || strings.Contains(c.Short, "\n") {
		t.Errorf("the short text begins with a capital and has no full stop: %q", c.Short)
	}
	if leaf := !c.HasSubCommands(); leaf && (c.Long == "" || c.Example == "" || c.Args == nil) {
		t.Errorf("a command that does something has a long text (%d bytes), an example (%d) and says which arguments it wants (%v)", len(c.Long), len(c.Example), c.Args != nil)
	}
	if !c.HasParent() && c.Long == "" {
		t.Error("nothing says what the program is for")
	}
	if c.Long != strings.TrimSpace(c.Long) || c.Example != strings.TrimRight(c.Example, " \n") {
		t.Error("blanks around a text")
	}
}

// checkExample looks for the commands and flags of the example's lines, as far as they are the program's.
func checkExample(t *testing.T, root, c *cobra.Command) {
	t.Helper()
	seen := false
	for _, line := range strings.Split(strings.ReplaceAll(c.Example, "\\\n", " "), "\n") {
		if !strings.HasPrefix(line, "  ") && line != "" {
			t.Errorf("the example is not indented: %q", line)
		}
		_, words, ok := strings.Cut(line, root.Name()+" ")
		if !ok {
			continue
		}
		var args []string
		for _, word := range strings.Fields(words) {
			if strings.ContainsAny(word[:1], "|>#)") || word == "--" {
				break
			}
			args = append(args, strings.Trim(word, `)"'`))
		}
		meant, _, err := root.Find(args)
		if err != nil {
			t.Errorf("%q: %v", line, err)
			continue
		}
		seen = seen || meant == c
		for _, arg := range args {
			name, _, _ := strings.Cut(arg, "=")
			name, long := strings.CutPrefix(name, "--")
			_ = meant.InheritedFlags() // which Flag finds from then on
			if long && meant.Flag(name) == nil && name != "help" {
				t.Errorf("%q: %s has no flag --%s", line, meant.CommandPath(), name)
			}
		}
	}
	if c.HasExample() && !seen && !c.HasSubCommands() {
		t.Errorf("the example does not show %s:\n%s", c.CommandPath(), c.Example)
	}
}

func checkHelp(t *testing.T, root, c *cobra.Command) {
	t.Helper()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetArgs(append(strings.Fields(c.CommandPath())[1:], "--help"))
	if err := root.Execute(); err != nil {
		t.Error(err)
	}
	for line := range strings.Lines(out.String()) {
		line = strings.TrimSuffix(line, "\n")
		if width := utf8.RuneCountInString(line); width > cli.Width || strings.Contains(line, "\t") || strings.TrimRight(line, " ") != line {
			t.Errorf("%d columns, or a tab, or blanks at the end: %q", width, line)
		}
	}
}

var requiredText = regexp.MustCompile(`\(required\)$`)

func checkFlag(t *testing.T, f *pflag.Flag) {
	t.Helper()
	if f.Usage == "" || strings.HasSuffix(f.Usage, ".") || strings.Contains(f.Usage, "\n") {
		t.Errorf("--%s: the text is one sentence without a full stop: %q", f.Name, f.Usage)
	}
	if _, required := f.Annotations[cobra.BashCompOneRequiredFlag]; required != requiredText.MatchString(f.Usage) {
		t.Errorf("--%s: the text ends with (required) where the flag is, and only there: %q", f.Name, f.Usage)
	}
	if word := instead[f.Name]; word != "" {
		t.Errorf("--%s is called --%s: %s", f.Name, word, agreed[word].meaning)
	}
	if a, ok := agreed[f.Name]; ok && (f.Shorthand != a.shorthand || f.Value.Type() != a.kind) {
		t.Errorf("--%s is -%s, %s, and agreed is -%s, %s: %s", f.Name, f.Shorthand, f.Value.Type(), a.shorthand, a.kind, a.meaning)
	}
	for name, a := range agreed {
		if f.Shorthand != "" && f.Shorthand == a.shorthand && agreed[f.Name].shorthand != a.shorthand {
			t.Errorf("-%s is --%s, and not --%s", f.Shorthand, name, f.Name)
		}
	}
}
