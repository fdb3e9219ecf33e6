package cli_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"pgregory.net/rapid"

	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/internal/cli/clitest"
)

// newProgram is a small program that has everything a program of ours may have.
func newProgram() *cobra.Command {
	root := &cobra.Command{Use: "grow", Short: "Grow plants", Long: "grow grows plants.", Example: "  grow tree --height 3", Version: "1"}
	root.AddGroup(&cobra.Group{ID: "plants", Title: "Plants:"})
	tree := &cobra.Command{
		Use: "tree [NAME]", Short: "Grow a tree", Long: "Grow a tree.", GroupID: "plants",
		Example: "  grow tree oak --height 3 \\\n      --kind oak",
		Args:    cli.NeedsArguments("[NAME]"),
		RunE: func(c *cobra.Command, _ []string) error {
			fmt.Fprintln(c.OutOrStdout(), "grown")
			return nil
		},
	}
	tree.Flags().Int("height", 0, "of the tree in metres, from the ground on which it stands to the topmost leaf that it has in summer (required)")
	tree.Flags().String("kind", "", "oak or beech")
	tree.Flags().Bool("wild", false, "without care")
	tree.Flags().Bool("tended", false, "with care")
	tree.MarkFlagsMutuallyExclusive("wild", "tended")
	cli.Require(tree, "height")
	cli.CompleteFrom(tree, "kind", "oak", "beech")
	cli.Exits(tree, 7, "it is winter")
	shrub := &cobra.Command{Use: "shrub", Short: "Grow shrubs"}
	shrub.AddCommand(&cobra.Command{
		Use: "rose FILE...", Short: "Grow roses", Long: "Grow roses.", Example: "  grow shrub rose red.yaml",
		Args: cli.NeedsArguments("FILE..."), ValidArgsFunction: cli.Files("yaml"),
		RunE: func(*cobra.Command, []string) error {
			return &cli.ExitError{Code: 7, Err: errors.New("it is winter")}
		},
	})
	root.AddCommand(tree, shrub)
	cli.Configure(root)
	return root
}

// run runs a command line and returns what it printed and its error.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	root := newProgram()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

func TestManners(t *testing.T) { clitest.Manners(t, newProgram) }

func TestACommandLineIsRefusedWithWhatToDo(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"an unknown command":                       {[]string{"weed"}, "unknown command \"weed\"; see `grow --help`"},
		"a command with a slip":                    {[]string{"tere"}, "unknown command \"tere\"; did you mean tree? See `grow --help`"},
		"a slip below another command":             {[]string{"shrub", "rosse"}, "unknown command \"rosse\"; did you mean rose? See `grow shrub --help`"},
		"help of what there is not":                {[]string{"help", "shrub", "rosse"}, "unknown command \"rosse\"; did you mean rose? See `grow help --help`"},
		"an unknown flag":                          {[]string{"tree", "--colour"}, "unknown flag: --colour; see `grow tree --help`"},
		"a flag with a slip":                       {[]string{"tree", "--hight=3"}, "unknown flag: --hight; did you mean --height? See `grow tree --help`"},
		"an unknown letter":                        {[]string{"tree", "-k"}, "unknown shorthand flag: 'k' in -k; see `grow tree --help`"},
		"a value that is none":                     {[]string{"tree", "--height=tall"}, "invalid argument \"tall\" for \"--height\" flag: strconv.ParseInt: parsing \"tall\": invalid syntax; see `grow tree --help`"},
		"a flag that is missing":                   {[]string{"tree"}, "--height is missing; see `grow tree --help`"},
		"two flags that exclude each other":        {[]string{"tree", "--height=3", "--wild", "--tended"}, "if any flags in the group [wild tended] are set none of the others can be; [tended wild] were all set; see `grow tree --help`"},
		"an argument too many":                     {[]string{"tree", "--height=3", "oak", "beech"}, "unexpected argument \"beech\"; see `grow tree --help`"},
		"an argument that is missing":              {[]string{"shrub", "rose"}, "FILE is missing; see `grow shrub rose --help`"},
		"a shell that there is not":                {[]string{"completion", "bsh"}, "unknown shell \"bsh\", use one of bash, fish, powershell, zsh; did you mean bash? See `grow completion --help`"},
		"a shell that is not named":                {[]string{"completion"}, "SHELL is missing; see `grow completion --help`"},
		"an argument to a program of commands":     {[]string{"--", "weed"}, "unknown command \"weed\"; see `grow --help`"},
		"a flag of a command given to the program": {[]string{"--height=3"}, "unknown flag: --height; see `grow --help`"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := run(t, c.args...)
			if cli.Code(err) != cli.Usage || err.Error() != c.want || out != "" {
				t.Errorf("%d: %v\nwant: %s\n%s", cli.Code(err), err, c.want, out)
			}
		})
	}
}

func TestWants(t *testing.T) {
	for name, c := range map[string]struct {
		names, args []string
		ok          bool
	}{
		"nothing":                      {nil, nil, true},
		"nothing, and something":       {nil, []string{"a"}, false},
		"one":                          {[]string{"A"}, []string{"a"}, true},
		"one, and none":                {[]string{"A"}, nil, false},
		"one, and two":                 {[]string{"A"}, []string{"a", "b"}, false},
		"one that may be left out":     {[]string{"[A]"}, nil, true},
		"it, and two":                  {[]string{"[A]"}, []string{"a", "b"}, false},
		"two or more, and one":         {[]string{"A", "A..."}, []string{"a"}, false},
		"two or more, and three":       {[]string{"A", "A..."}, []string{"a", "b", "c"}, true},
		"one or more, and none of it":  {[]string{"A..."}, nil, false},
		"one or more, and one of them": {[]string{"A..."}, []string{"a"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if err := cli.NeedsArguments(c.names...)(nil, c.args); (err == nil) != c.ok {
				t.Errorf("%q for %q: %v", c.args, c.names, err)
			}
		})
	}
}

func TestHelpListsAllCommands(t *testing.T) {
	for name, c := range map[string]struct {
		args       []string
		want, none []string
	}{
		"a program":        {[]string{}, []string{"Usage:\n  grow [command]\n", "\nPlants:\n  tree ", "\nOther commands:\n  completion ", "  shrub ", "Exit codes:\n  0    done\n  1    failed\n  2    invalid command line\n"}, []string{"grow [flags]", "  rose"}},
		"a group":          {[]string{"shrub"}, []string{"Usage:\n  grow shrub [command]\n", "\nCommands:\n  rose "}, []string{"[flags]"}},
		"a command":        {[]string{"tree", "--help"}, []string{"Usage:\n  grow tree [NAME] [flags]\n", "  7    it is winter\n", "the topmost leaf"}, nil},
		"by the word help": {[]string{"help", "shrub", "rose"}, []string{"Usage:\n  grow shrub rose FILE... [flags]\n"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := run(t, c.args...)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range c.want {
				if !strings.Contains(out, want) {
					t.Errorf("%q is missing in\n%s", want, out)
				}
			}
			for _, none := range c.none {
				if strings.Contains(out, none) {
					t.Errorf("%q is in\n%s", none, out)
				}
			}
			for line := range strings.Lines(out) {
				if utf8.RuneCountInString(line) > cli.Width+1 {
					t.Errorf("too wide: %s", line)
				}
			}
		})
	}
}

func TestAUsageLineOfAnyLengthIsWrappedAndLosesNoWord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringMatching(`[A-Zü|]{1,30}`), 1, 40).Draw(t, "words")
		root := &cobra.Command{Use: "p " + strings.Join(words, " "), Run: func(*cobra.Command, []string) {}, DisableFlagsInUseLine: true}
		cli.Configure(root)
		var out bytes.Buffer
		root.SetOut(&out)
		if err := root.Usage(); err != nil {
			t.Fatal(err)
		}
		text, _, _ := strings.Cut(strings.TrimPrefix(out.String(), "Usage:\n"), "\nExit codes:")
		if got := strings.Fields(text); !slices.Equal(got, append([]string{"p"}, words...)) {
			t.Errorf("%q", got)
		}
		for line := range strings.Lines(text) {
			if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > cli.Width {
				t.Errorf("too wide: %s", line)
			}
		}
	})
}

func TestExitCodes(t *testing.T) {
	if _, err := run(t, "shrub", "rose", "red.yaml"); cli.Code(err) != 7 {
		t.Error(err)
	}
	if out, err := run(t, "tree", "--height=3"); err != nil || out != "grown\n" || cli.Code(err) != 0 {
		t.Error(out, err)
	}
	if code := cli.Code(errors.New("any")); code != cli.Failed {
		t.Error(code)
	}
}

func TestCompletion(t *testing.T) {
	clitest.Completes(t, newProgram, map[string]clitest.Completion{
		"commands, the help among them":       clitest.Offered([]string{""}, []string{"completion", "help", "shrub", "tree"}, cobra.ShellCompDirectiveNoFileComp),
		"commands by their beginning":         clitest.Offered([]string{"s"}, []string{"shrub"}, cobra.ShellCompDirectiveNoFileComp),
		"shells":                              clitest.Offered([]string{"completion", ""}, []string{"bash", "fish", "powershell", "zsh"}, cobra.ShellCompDirectiveNoFileComp),
		"a flag without which it is nothing":  clitest.Offered([]string{"tree", "--"}, []string{"--height"}, cobra.ShellCompDirectiveNoFileComp),
		"other flags once that is there":      clitest.Offered([]string{"tree", "--height=3", "--w"}, []string{"--wild"}, cobra.ShellCompDirectiveNoFileComp),
		"no flag that another one excludes":   clitest.Offered([]string{"tree", "--height=3", "--tended", "--w"}, nil, cobra.ShellCompDirectiveNoFileComp),
		"values":                              clitest.Offered([]string{"tree", "--kind", ""}, []string{"oak", "beech"}, cobra.ShellCompDirectiveNoFileComp),
		"values behind an equals sign":        clitest.Offered([]string{"tree", "--kind=b"}, []string{"beech"}, cobra.ShellCompDirectiveNoFileComp),
		"no file where a number is wanted":    clitest.Offered([]string{"tree", "--height", ""}, nil, cobra.ShellCompDirectiveNoFileComp),
		"files by extension":                  clitest.Offered([]string{"shrub", "rose", ""}, []string{"yaml"}, cobra.ShellCompDirectiveFilterFileExt),
		"commands to be helped with":          clitest.Offered([]string{"help", "sh"}, []string{"shrub"}, cobra.ShellCompDirectiveNoFileComp),
		"nothing behind an argument too many": clitest.Offered([]string{"completion", "bash", ""}, nil, cobra.ShellCompDirectiveNoFileComp),
	})
}

func TestTheScriptOfEveryShellIsOne(t *testing.T) {
	for shell, check := range map[string][]string{"bash": {"bash", "-n"}, "zsh": {"zsh", "-n"}, "fish": {"fish", "--no-execute"}, "powershell": nil} {
		t.Run(shell, func(t *testing.T) {
			script, err := run(t, "completion", shell)
			if err != nil || !strings.Contains(script, "grow") || !strings.Contains(script, "__complete") {
				t.Fatalf("%v\n%s", err, script)
			}
			if len(check) == 0 {
				return
			}
			if _, err := exec.LookPath(check[0]); err != nil {
				t.Skipf("%s is not here to read it", check[0])
			}
			c := exec.CommandContext(t.Context(), check[0], append(check[1:], "/dev/stdin")...)
			c.Stdin = strings.NewReader(script)
			if out, err := c.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

func TestAMistakeInTheProgramIsNotOverlooked(t *testing.T) {
	for name, mistake := range map[string]func(c *cobra.Command){
		"a flag that is required and is not there":  func(c *cobra.Command) { cli.Require(c, "none") },
		"a flag that is completed and is not there": func(c *cobra.Command) { cli.CompleteFrom(c, "none", "a") },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("it was")
				}
			}()
			c := &cobra.Command{Use: "p"}
			c.SetOut(io.Discard)
			mistake(c)
		})
	}
}
