package scenario

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

// outlineFile is the file of a scenario's outline, which is the same on every backend. This package's tests write it
// with -rewrite.
func outlineFile(root string, scenario Scenario) string {
	return filepath.Join(root, "e2e", "scenario", "testdata", "outline", scenario.Name+".txt")
}

// differences is a diff of two outlines, "" if they are equal.
func differences(want, got string) string {
	return cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n"))
}

// interrupted ends when the test binary receives a signal to end.
var interrupted = sync.OnceValue(func() context.Context {
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	return ctx
})

// testContext is the context of a test's run: an interrupted run cleans up, like an interrupted demo, and no other one
// begins.
func testContext(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	if interrupted().Err() != nil {
		t.Fatal("the tests were interrupted")
	}
	ctx, cancel := context.WithCancel(t.Context())
	unwatch := context.AfterFunc(interrupted(), cancel)
	timed, cancelTimed := ctx, context.CancelFunc(func() {})
	if deadline, ok := t.Deadline(); ok {
		timed, cancelTimed = context.WithDeadline(ctx, deadline.Add(-patience.Short)) // so that it can clean up
	}
	return timed, func() {
		cancelTimed()
		unwatch()
		cancel()
	}
}

// RunInTest runs a scenario in a test and writes its report to the test's log. The test fails unless all assertions
// hold and the outline is that of testdata. root is the repository, out the name of the folder below e2e/out. The test
// is skipped where nothing was built for it (as in `go test ./...` without make), and where the backend does not
// support the scenario.
func RunInTest(t *testing.T, scenario Scenario, backend Backend, root, out string) Outcome {
	t.Helper()
	tools, err := FindTools()
	if err != nil {
		if os.Getenv(trainerVariable) == "" {
			t.Skipf("a scenario needs executables: %v", err)
		}
		t.Fatal(err)
	}
	ctx, stop := testContext(t)
	defer stop()
	var reporter Reporter
	outcome, err := Run(ctx, scenario, backend, Options{
		Tools: tools, Root: root, Out: OutDir(root, out), MNISTDir: os.Getenv("MNIST_DIR"), Logf: t.Logf,
		Observe: func(event eventlog.Event) {
			for _, line := range reporter.Lines(event) {
				t.Logf("%7.2f s  %-14s %-9s %s", line.At.Seconds(), line.Job, line.Object, line.Text)
			}
		},
	})
	if unsupported := (*UnsupportedError)(nil); errors.As(err, &unsupported) {
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
	want, err := os.ReadFile(outlineFile(root, scenario))
	if err != nil {
		t.Error(err)
	} else if diff := differences(string(want), outcome.Outline); diff != "" {
		t.Errorf("the outline differs from testdata (-testdata +this run):\n%s", diff)
	}
	if outcome.Page == "" {
		t.Error("no timeline was drawn")
	}
	return outcome
}
