package main

import (
	"io"
	"testing"

	"github.com/spf13/cobra"

	"github.com/elastic-training/terraform-provider-elastic/e2e/scenario"
	"github.com/elastic-training/terraform-provider-elastic/internal/commandline"
	"github.com/elastic-training/terraform-provider-elastic/internal/commandline/commandlinetest"
)

func TestManners(t *testing.T) {
	commandlinetest.Manners(t, func() *cobra.Command { return newRoot(func(scenario.Story) error { return nil }) })
}

func TestTheStoryIsTheOneThatIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
		code int
	}{
		"none named":              {nil, "elastic-scheduling", 0},
		"one of them":             {[]string{"chaos"}, "chaos", 0},
		"one that there is not":   {[]string{"peace"}, "", commandline.Usage},
		"two":                     {[]string{"chaos", "chaos"}, "", commandline.Usage},
		"a flag that there isn't": {[]string{"--story=chaos"}, "", commandline.Usage},
	} {
		t.Run(name, func(t *testing.T) {
			told := ""
			root := newRoot(func(s scenario.Story) error {
				told = s.Name
				return nil
			})
			root.SetOut(io.Discard)
			root.SetArgs(append([]string{}, c.args...))
			if err := root.ExecuteContext(t.Context()); commandline.Code(err) != c.code || told != c.want {
				t.Errorf("told %q: %v", told, err)
			}
		})
	}
}
