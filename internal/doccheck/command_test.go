package doccheck_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/elastic-training/terraform-provider-elastic/internal/doccheck"
)

func TestCommandsAreFoundInBlocksAndInTheText(t *testing.T) {
	d := doccheck.Document{Path: "examples/a/README.md", Text: strings.Join([]string{
		"Type `FAST=1 bin/run it`, or `walk`, or `runner`:", // line 1
		"",
		"```sh",
		"A=1 B=2 run --at '$HOME' \\", // 4
		"  *.yaml   # and a comment",
		"export $(bin/run up --image '*'=\"a b\")", // 6
		"walk | run on", // 7
		"```",
		"```text",
		"run",
		"```",
	}, "\n")}
	got, err := d.Commands("run", "jump")
	if err != nil {
		t.Fatal(err)
	}
	at := func(line string) string { return "examples/a/README.md:" + line }
	want := []doccheck.Command{
		{Where: at("4"), Folder: "examples/a", Program: "run", Environment: []string{"A=1", "B=2"}, Arguments: []string{"--at", `\$HOME`, "*.yaml"}, Whole: true},
		{Where: at("6"), Folder: "examples/a", Program: "run", Environment: []string{}, Arguments: []string{"up", "--image", `\*=a b`}, Whole: true},
		{Where: at("7"), Folder: "examples/a", Program: "run", Environment: []string{}, Arguments: []string{"on"}, Whole: true},
		{Where: at("1"), Folder: "examples/a", Program: "run", Environment: []string{"FAST=1"}, Arguments: []string{"it"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestALineThatNoShellTakesIsNamed(t *testing.T) {
	d := doccheck.Document{Path: "README.md", Text: "```sh\nrun 'it\n```\n"}
	if _, err := d.Commands("run"); err == nil || !strings.Contains(err.Error(), "README.md:2: run 'it: a single quote") {
		t.Error(err)
	}
}

func TestACommandIsHeldToTheTree(t *testing.T) {
	tree := func() *cobra.Command {
		tree := &cobra.Command{Use: "run"}
		far := &cobra.Command{Use: "far WHERE", Args: cobra.ExactArgs(1), Run: func(*cobra.Command, []string) {}}
		far.Flags().Int("steps", 1, "")
		far.Flags().String("shoes", "", "")
		if err := far.MarkFlagRequired("shoes"); err != nil {
			t.Fatal(err)
		}
		tree.AddCommand(far)
		return tree
	}
	for name, test := range map[string]struct {
		whole     bool
		arguments string
		want      string // of the error; "" is none
	}{
		"whole":                               {true, "far home --shoes red", ""},
		"with help":                           {true, "far --help", ""},
		"help":                                {true, "help far", ""},
		"spoken of, without its arguments":    {false, "far", ""},
		"typed, without its arguments":        {true, "far --shoes red", "accepts 1 arg"},
		"typed, without its required flag":    {true, "far home", `"shoes" not set`},
		"an unknown command":                  {true, "near", `unknown command "near"`},
		"an unknown command, spoken of":       {false, "near", `unknown command "near"`},
		"an unknown flag":                     {true, "far home --shoes red --fast", "unknown flag: --fast"},
		"an unknown flag, spoken of":          {false, "far --fast", "unknown flag: --fast"},
		"a flag with a value of another kind": {true, "far home --shoes red --steps many", `invalid argument "many"`},
	} {
		t.Run(name, func(t *testing.T) {
			c := doccheck.Command{Program: "run", Arguments: strings.Fields(test.arguments), Whole: test.whole}
			err := c.CheckAgainst(tree())
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%v, not %q", err, test.want)
			}
		})
	}
}
