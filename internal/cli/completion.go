package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// newCompletion is the command that prints what a shell needs to complete the program's command lines.
func newCompletion(program string) *cobra.Command {
	shells := []string{"bash", "fish", "powershell", "zsh"}
	return &cobra.Command{
		Use:   "completion " + strings.Join(shells, "|"),
		Short: "Generate a shell completion script",
		Long: strings.ReplaceAll(`Generate a script that completes commands, flags and their values. For each shell: the
first line loads the script into the current shell; save the script to the file in the
second line for new shells.

  bash        source <(PROGRAM completion bash)
              ~/.local/share/bash-completion/completions/PROGRAM
              (both with the package bash-completion)
  zsh         source <(PROGRAM completion zsh)
              "${fpath[1]}/_PROGRAM"
              (both after: autoload -U compinit; compinit)
  fish        PROGRAM completion fish | source
              ~/.config/fish/completions/PROGRAM.fish
  powershell  PROGRAM completion powershell | Out-String | Invoke-Expression
              (add the same line to the file $PROFILE)`, "PROGRAM", program),
		Example: strings.ReplaceAll(`  source <(PROGRAM completion bash)
  PROGRAM completion zsh > "${fpath[1]}/_PROGRAM"`, "PROGRAM", program),
		ValidArgs: shells,
		Args:      NeedsArguments("SHELL"),
		RunE: func(c *cobra.Command, args []string) error {
			root, out := c.Root(), c.OutOrStdout()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(out, true)
			case "fish":
				return root.GenFishCompletion(out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(out)
			case "zsh":
				return root.GenZshCompletion(out)
			}
			return usageProblem(c, fmt.Errorf("unknown shell %q, use one of %s", args[0], strings.Join(shells, ", ")), args[0], shells, "")
		},
	}
}

// CompleteFlag lets shells complete the values of a flag by what a function knows.
func CompleteFlag(c *cobra.Command, flag string, complete cobra.CompletionFunc) {
	must(c.RegisterFlagCompletionFunc(flag, complete))
}

// CompleteFrom lets shells complete the values of a flag from those that there are.
func CompleteFrom(c *cobra.Command, flag string, values ...string) {
	CompleteFlag(c, flag, func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return Beginning(typed, values)
	})
}

// Beginning are the values that begin with what is typed, and no files. A value may be followed by a tab and a
// description.
func Beginning(typed string, values []string) ([]string, cobra.ShellCompDirective) {
	var those []string
	for _, v := range values {
		if strings.HasPrefix(v, typed) {
			those = append(those, v)
		}
	}
	return those, cobra.ShellCompDirectiveNoFileComp
}

// CompleteFiles lets shells complete a flag's value by files whose names end with one of the extensions, or by all
// files where none is named.
func CompleteFiles(c *cobra.Command, flag string, extensions ...string) {
	CompleteFlag(c, flag, Files(extensions...))
}

// CompleteDirectories lets shells complete the values of flags by directories.
func CompleteDirectories(c *cobra.Command, flags ...string) {
	for _, flag := range flags {
		CompleteFlag(c, flag, Directories)
	}
}

// Directories completes by directories alone.
func Directories(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// Files completes by files whose names end with one of the extensions, which have no dot, or by all files where none is
// named.
func Files(extensions ...string) cobra.CompletionFunc {
	directive := cobra.ShellCompDirectiveDefault
	if len(extensions) > 0 {
		directive = cobra.ShellCompDirectiveFilterFileExt
	}
	return cobra.FixedCompletions(extensions, directive)
}

// FirstArgument completes the first argument by a function, and no other.
func FirstArgument(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return cobra.NoFileCompletions(c, args, typed)
		}
		return complete(c, args, typed)
	}
}
