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

// Configure gives a program's root command the project's manners: errors are printed once, by Run, and a bad flag points to the help.
func Configure(root *cobra.Command) {
	root.SilenceErrors = true
	root.SilenceUsage = true
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return UsageError("%w; see `%s --help`", err, c.CommandPath())
	})
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
