package clitest

import (
	"bytes"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Offers is the completion that a shell receives for the last of the words, which may be empty, and its directive:
// files of the names' endings that are offered, for instance. Descriptions are left out.
func Offers(t *testing.T, root *cobra.Command, words ...string) ([]string, cobra.ShellCompDirective) {
	t.Helper()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(io.Discard)
	root.SetArgs(append([]string{cobra.ShellCompNoDescRequestCmd}, words...))
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("%q: %v", words, err)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	last := len(lines) - 1
	directive, err := strconv.Atoi(strings.TrimPrefix(lines[last], ":"))
	if err != nil {
		t.Fatalf("%q: %v", words, err)
	}
	return lines[:last], cobra.ShellCompDirective(directive)
}

// Completion is a command line without its program, and what is to be offered for its last word.
type Completion struct {
	Words     []string
	Want      []string
	Directive cobra.ShellCompDirective
}

// Offered is the Completion of words.
func Offered(words, want []string, directive cobra.ShellCompDirective) Completion {
	return Completion{Words: words, Want: want, Directive: directive}
}

// Completes checks what is offered, in any order.
func Completes(t *testing.T, newRoot func() *cobra.Command, cases map[string]Completion) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, directive := Offers(t, newRoot(), c.Words...)
			slices.Sort(got)
			if want := slices.Sorted(slices.Values(c.Want)); !slices.Equal(got, want) || directive != c.Directive {
				t.Errorf("%q offers %q (%d), not %q (%d)", c.Words, got, directive, want, c.Directive)
			}
		})
	}
}
