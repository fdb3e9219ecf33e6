package scenario

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

// outlineFile holds what every telling of a story comes to. It is written by the tests of this package, with -rewrite.
func outlineFile(root string, story Story) string {
	return filepath.Join(root, "e2e", "scenario", "testdata", "outline", story.Name+".txt")
}

// differences are the lines in which two outlines differ, with some around them; nothing where they are equal.
func differences(want, got string) string {
	return cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n"))
}

// cleanUpTime is what a story gets to be interrupted in order before the test binary's own limit.
const cleanUpTime = time.Minute

// TellInTest tells a story in a test, narrates it in the test's log, and expects its promises to be kept and its outline to
// be the one in testdata, which is every backend's. root is the repository, out the name of the folder below e2e/out. The
// test is skipped where nothing was built for it (as in `go test ./...` without make), and where the backend lacks what
// the story needs.
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
	if err != nil {
		return outcome
	}
	want, err := os.ReadFile(outlineFile(root, story))
	if err != nil {
		t.Error(err)
	} else if diff := differences(string(want), outcome.Outline); diff != "" {
		t.Errorf("the story was told differently than elsewhere (-there +here):\n%s", diff)
	}
	if outcome.Page == "" {
		t.Error("no timeline was drawn")
	}
	return outcome
}
