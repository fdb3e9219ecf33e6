// Package commandline is what the project's programs have in common: how they end and how they refuse a command line. Commands themselves live with
// the program.
package commandline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit codes that mean the same everywhere.
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

// UsageError is a command line that cannot be meant.
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

// Configure gives a program's root command, which has all its commands, the project's manners: errors are printed once, by Run, and a bad flag,
// wrong arguments and an unknown command point to the help.
func Configure(root *cobra.Command) {
	root.SilenceErrors = true
	root.SilenceUsage = true
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return UsageError("%w; see `%s --help`", err, c.CommandPath())
	})
	configureArguments(root)
}

// configureArguments makes usage errors of what cobra calls failures of its own, or answers with the help as if nothing were wrong: an unknown
// command below another one.
func configureArguments(c *cobra.Command) {
	if c.HasSubCommands() && !c.Runnable() {
		c.Args = func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown command %q", args[0])
			}
			return nil
		}
		c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
		c.DisableFlagsInUseLine = true
	}
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return UsageError("%w; see `%s --help`", err, c.CommandPath())
			}
			return nil
		}
	}
	for _, below := range c.Commands() {
		configureArguments(below)
	}
}

// Run runs a command line until it ends or the program is told to stop, and prints its error.
func Run(root *cobra.Command, args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", root.Name(), err)
	}
	return err
}
