// Command simcluster runs a real Kubernetes control plane and simulated nodes on this machine, from one binary:
// `simcluster up`, a few seconds, and `kubectl` works. See `simcluster --help`.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
)

// Exit codes. They are documented in the help text.
const (
	exitOK         = 0
	exitFailure    = 1
	exitUsage      = 2
	exitNotRunning = 3 // as `systemctl status` has it
)

func main() {
	if code, done := runComponent(os.Args[1:]); done {
		os.Exit(code)
	}
	// Kubernetes' packages register flags of their own, such as --version, which cobra would offer as ours.
	pflag.CommandLine = pflag.NewFlagSet(os.Args[0], pflag.ContinueOnError)
	// A second ^C is not swallowed: it ends the process at once, and with it everything that it supervises.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(exitCode(rootCommand().ExecuteContext(ctx)))
}

// A usageError is a command line that makes no sense.
type usageError struct{ error }

// errNotRunning is the answer of `status` and others where there is no cluster to ask.
var errNotRunning = errors.New("the cluster is not running; `simcluster up` starts it")

func exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(os.Stderr, "simcluster: %v\n", err)
	var usage usageError
	switch {
	case errors.As(err, &usage):
		return exitUsage
	case errors.Is(err, errNotRunning):
		return exitNotRunning
	}
	return exitFailure
}
