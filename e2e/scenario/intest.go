package scenario

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/eventlog"
)

// cleanUpTime is what a story gets to be interrupted in order before the test binary's own limit.
const cleanUpTime = time.Minute

// TellInTest tells a story in a test, narrates it in the test's log, and expects its promises to be kept. root is the
// repository, out the name of the folder below e2e/out. The test is skipped where nothing was built for it (as in `go
// test ./...` without make), and where the backend lacks what the story needs.
func TellInTest(t *testing.T, story Story, backend Backend, root, out string) Outcome {
	t.Helper()
	tools, err := FindTools()
	if err != nil {
		if os.Getenv(trainerVariable) == "" {
			t.Skipf("the story needs executables: %v", err)
		}
		t.Fatal(err)
	}
	// An interrupted test has something to clean up, like an interrupted demo.
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if deadline, ok := t.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-cleanUpTime))
		defer cancel()
	}
	var narrator Narrator
	outcome, err := Tell(ctx, story, backend, Options{
		Tools: tools, Root: root, Out: OutDir(root, out), MNISTDir: os.Getenv("MNIST_DIR"), Say: t.Logf,
		Observe: func(event eventlog.Event) {
			for _, line := range narrator.Tell(event) {
				t.Logf("%7.2f s  %-14s %-9s %s", line.At.Seconds(), line.Job, line.Who, line.Text)
			}
		},
	})
	if lacking := (*LackingError)(nil); errors.As(err, &lacking) {
		t.Skip(err)
	}
	if err != nil {
		t.Error(err)
	}
	for _, violation := range outcome.Violations {
		t.Error(violation)
	}
	if outcome.Page == "" {
		t.Error("no timeline was drawn")
	}
	return outcome
}
