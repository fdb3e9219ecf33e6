// Command demo tells the tutorial's story on an embedded cluster as it happens, ends with a summary and a timeline
// picture, and leaves no process behind. `make demo` builds what it needs and runs it in the repository's root.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/e2e/scenario"
	"github.com/elastic-training/terraform-provider-elastic/e2e/scenario/embedded"
	"github.com/elastic-training/terraform-provider-elastic/e2e/scenario/eventlog"
)

// How long the jobs should train, so that the story can be followed and the low job outlives the high one.
const (
	lowLasts  = time.Minute
	highLasts = 15 * time.Second
)

var (
	errInterrupted = errors.New("interrupted; the cluster is stopped and everything is cleaned up")
	errBroken      = errors.New("the story did not keep all of its promises")
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	terminal := newTerminal(os.Stdout)
	said := context.AfterFunc(ctx, func() {
		stop() // a second ^C ends this process at once, and the cluster with it
		terminal.say("\nInterrupted: terraform destroy, then the cluster stops. This takes some seconds.")
	})
	err := demo(ctx, terminal)
	said()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "\ndemo:", err)
		os.Exit(1)
	}
}

func demo(ctx context.Context, terminal *terminal) error {
	binaries, err := embedded.FindBinaries()
	if err != nil {
		return err
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	var narrator scenario.Narrator
	outcome, err := embedded.ElasticScheduling(ctx, embedded.Options{
		Binaries:  binaries,
		Root:      root,
		Out:       filepath.Join(root, "e2e", "out", "elastic-scheduling"),
		DataCache: filepath.Join(root, "e2e", "out", "data"),
		MNISTDir:  os.Getenv("MNIST_DIR"),
		LowLasts:  lowLasts,
		HighLasts: highLasts,
		Say:       terminal.say,
		Observe: func(event eventlog.Event) {
			for _, line := range narrator.Tell(event) {
				terminal.line(line)
			}
		},
	})
	switch {
	case ctx.Err() != nil:
		return errInterrupted
	case err != nil:
		return err
	}
	terminal.summary(outcome.Events, outcome.Violations)
	terminal.say("\nThe picture: %s", outcome.Page)
	if len(outcome.Violations) > 0 {
		return errBroken
	}
	return nil
}
