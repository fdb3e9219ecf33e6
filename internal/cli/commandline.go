// Package cli contains the conventions that all programs of the project share: exit codes, errors of command lines, the
// layout of help, and shell completion. The commands are in the packages of the programs; package clitest checks that
// they follow the conventions.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/elastic-training/terraform-provider-elastic/internal/spelling"
)

// Exit codes that mean the same everywhere. Others are a command's own, which it documents by Exits.
const (
	Failed = 1
	Usage  = 2
)

// ExitError ends the program with a code of its own.
type ExitError struct {
	Code int
	Err  error
}

func (e *ExitError) Error() string { return e.Err.Error() }

// Unwrap gives the error within.
func (e *ExitError) Unwrap() error { return e.Err }

// UsageError is invalid command line.
func UsageError(format string, args ...any) error {
	return &ExitError{Usage, fmt.Errorf(format, args...)}
}

// Code is the exit code for an error.
func Code(err error) int {
	var exit *ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.Code
	}
	return Failed
}

// Configure gives a program's root command, which has all its commands, the project's manners: errors are printed once,
// by Run; a bad flag, wrong arguments and an unknown command point to the help, and to what was probably meant; and
// `completion` prints the scripts that shells need.
func Configure(root *cobra.Command) {
	root.SilenceErrors = true
	root.SilenceUsage = true
	root.SetUsageFunc(usage)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		var unknown *pflag.NotExistError
		if errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "" {
			return usageProblem(c, err, unknown.GetSpecifiedName(), flagNames(c), "--")
		}
		return usageProblem(c, err, "", nil, "")
	})
	root.CompletionOptions.DisableDefaultCmd = true
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp) // an argument is a file where a command says so
	if root.HasSubCommands() {
		root.AddCommand(newCompletion(root.Name()))
		configureHelp(root)
	}
	configure(root)
}

// configure makes usage errors of what cobra calls failures of its own, or answers with the help as if nothing were
// wrong: an unknown command below another one.
func configure(c *cobra.Command) {
	if c.HasSubCommands() && !c.Runnable() {
		c.Args = func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageProblem(c, fmt.Errorf("unknown command %q", args[0]), args[0], commandNames(c), "")
			}
			return nil
		}
		c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	} else if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return usageProblem(c, err, "", nil, "")
			}
			return nil
		}
	}
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		if missing := missingFlags(c); len(missing) > 0 {
			verb := "is"
			if len(missing) > 1 {
				verb = "are"
			}
			return usageProblem(c, fmt.Errorf("%s %s missing", strings.Join(missing, " and "), verb), "", nil, "")
		}
		if err := c.ValidateFlagGroups(); err != nil {
			return usageProblem(c, err, "", nil, "")
		}
		return nil
	}
	for _, below := range c.Commands() {
		if below.Name() != helpName {
			configure(below)
		}
	}
}

// usageProblem is the usage error of a command line, with the candidate that word probably is, and the way to the help.
func usageProblem(c *cobra.Command, err error, word string, candidates []string, dashes string) error {
	if meant := spelling.Meant(word, candidates); meant != "" {
		return UsageError("%w; did you mean %s%s? See `%s --help`", err, dashes, meant, c.CommandPath())
	}
	return UsageError("%w; see `%s --help`", err, c.CommandPath())
}

func commandNames(c *cobra.Command) []string {
	var names []string
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() {
			names = append(names, below.Name())
		}
	}
	return names
}

func flagNames(c *cobra.Command) []string {
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return names
}

// Require marks flags without which a command makes no sense.
func Require(c *cobra.Command, flags ...string) {
	for _, name := range flags {
		must(c.MarkFlagRequired(name))
	}
}

// missingFlags are those of Require that were not given.
func missingFlags(c *cobra.Command) []string {
	var missing []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if _, required := f.Annotations[cobra.BashCompOneRequiredFlag]; required && !f.Changed {
			missing = append(missing, "--"+f.Name)
		}
	})
	return missing
}

// NeedsArguments is a command's Args: an argument for each name. [NAME] may be left out, and NAME... stands for one or
// more.
func NeedsArguments(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		for i, name := range names {
			if i < len(args) || strings.HasPrefix(name, "[") {
				continue
			}
			missing := strings.TrimSuffix(name, "...") + " is missing"
			if len(args) > 0 {
				missing += fmt.Sprintf(" after %q", args[len(args)-1])
			}
			return errors.New(missing)
		}
		last := len(names) - 1
		if len(args) > len(names) && (last < 0 || !strings.HasSuffix(names[last], "...")) {
			return fmt.Errorf("unexpected argument %q", args[len(names)])
		}
		return nil
	}
}

// must is for what only a mistake in the program brings about: a flag that the command has not.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// Run runs a command line until it ends or the program receives a signal to stop, and prints its error.
func Run(root *cobra.Command, args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return RunContext(ctx, root, args)
}

// RunContext is Run where the program itself says when to stop.
func RunContext(ctx context.Context, root *cobra.Command, args []string) error {
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", root.Name(), err)
	}
	return err
}
