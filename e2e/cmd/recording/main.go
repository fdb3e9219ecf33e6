// Command recording records a session in a terminal on an embedded cluster: a plan with its forecast, an apply that
// preempts a worker of another job, a plan without changes, and how that job goes on. It writes the recording in the
// format asciicast v2, which `asciinema play` replays, and draws it as the animated picture of the README. `make
// recording` builds what it needs and runs it in the repository's root.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/elastic-training/terraform-provider-elastic/e2e/recording"
	"github.com/elastic-training/terraform-provider-elastic/e2e/scenario"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/simcluster"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := cli.RunContext(ctx, newRoot(), os.Args[1:])
	stop()
	os.Exit(cli.Code(err))
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "recording FOLDER",
		Short: "Record a session in a terminal and draw it as an animated picture",
		Long: `Record a session in a terminal on an embedded cluster. FOLDER receives session.cast,
which asciinema replays, and its pictures session-light.svg and session-dark.svg. If a
command of the session fails, or does not print what the session is about, nothing is
written.

make recording builds the programs that this needs and sets their paths in
$SIMCLUSTER_BIN, $ELASTIC_TRAINER_BIN and $TERRAFORM_PROVIDER_BIN.`,
		Example: `  make recording
  bin/recording docs/images`,
		Args: cli.NeedsArguments("FOLDER"),
		RunE: func(c *cobra.Command, args []string) error { return record(c.Context(), ".", args[0]) },
	}
	cli.Exits(root, 0, "done")
	cli.Exits(root, cli.Failed, "failed")
	cli.Configure(root)
	return root
}

// record records the session in the repository root on a cluster of its own.
func record(ctx context.Context, root, folder string) (err error) {
	tools, err := scenario.FindTools()
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "recording-")
	if err != nil {
		return fmt.Errorf("make a folder for the recording: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	cluster, err := simcluster.Run(ctx, simcluster.Options{Images: map[string]string{trainingjob.ImageRepository: tools.Trainer}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Close()) }()
	recorded, err := recording.Record(ctx, tools, root, work, cluster.Kubeconfig)
	if err != nil {
		return err
	}
	return recorded.Write(folder)
}
