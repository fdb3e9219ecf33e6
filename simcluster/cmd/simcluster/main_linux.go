// Command simcluster runs a real Kubernetes control plane and simulated nodes on this machine, from one binary:
// `simcluster up`, a few seconds, and `kubectl` works. See `simcluster --help`.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/command"
)

func main() {
	if code, done := runComponent(os.Args[1:]); done {
		os.Exit(code)
	}
	forgetForeignFlags()
	// A second ^C is not swallowed: it ends the process at once, and with it everything that it supervises.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(cli.Code(cli.RunContext(ctx, command.NewRoot(), os.Args[1:])))
}

// forgetForeignFlags is because Kubernetes' packages register flags of their own, such as --version, which cobra would
// offer as ours.
func forgetForeignFlags() {
	pflag.CommandLine = pflag.NewFlagSet(os.Args[0], pflag.ContinueOnError)
}
