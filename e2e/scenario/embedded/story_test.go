package embedded

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/e2e/controlplane"
	"github.com/elastic-training/terraform-provider-elastic/e2e/scenario"
	"github.com/elastic-training/terraform-provider-elastic/e2e/simcluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/eventlog"
)

// Shorter than the demo's; what matters is the order.
const (
	lowLasts, highLasts = 40 * time.Second, 10 * time.Second
	highTaskLasts       = 8 * time.Second
)

// TestTheTutorialsStoryKeepsItsPromises tells the elastic-scheduling story, on MNIST's images when MNIST_DIR names
// them, in both ways in which nodes give containers their volumes. Event logs and timelines stay below e2e/out.
func TestTheTutorialsStoryKeepsItsPromises(t *testing.T) {
	for mounts, name := range map[string]string{
		controlplane.MountsAuto:    "with the best mounts of this machine",
		controlplane.MountsRewrite: "where no mount namespace can be entered",
	} {
		t.Run(name, func(t *testing.T) { tell(t, ElasticScheduling(lowLasts, highLasts), mounts) })
	}
}

func TestTheQueueStoryKeepsItsPromises(t *testing.T) {
	tell(t, QueuePriorities(highTaskLasts), controlplane.MountsAuto)
}

// TestTheStoryOfAnElasticJobUnderAQueueKeepsItsPromises tells it with terraform, from the queue's making to its end.
func TestTheStoryOfAnElasticJobUnderAQueueKeepsItsPromises(t *testing.T) {
	tell(t, UnderAQueue(), controlplane.MountsAuto)
}

// tell tells a story and expects its promises to be kept.
func tell(t *testing.T, story Story, mounts string) {
	binaries, err := FindBinaries()
	if err != nil {
		if os.Getenv(simcluster.BinaryVariable) == "" {
			t.Skipf("the story needs executables: %v", err)
		}
		t.Fatal(err)
	}
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	// Ended before the test binary's own limit, so that the cluster is stopped in order.
	ctx := t.Context()
	if deadline, ok := t.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-time.Minute))
		defer cancel()
	}
	var narrator scenario.Narrator
	outcome, err := Tell(ctx, story, Options{
		Binaries:  binaries,
		Root:      root,
		Out:       filepath.Join(root, "e2e", "out", "test-"+story.Name+"-"+mounts),
		DataCache: filepath.Join(root, "e2e", "out", "data"),
		MNISTDir:  os.Getenv("MNIST_DIR"),
		Mounts:    mounts,
		Say:       t.Logf,
		Observe: func(event eventlog.Event) {
			for _, line := range narrator.Tell(event) {
				t.Logf("%7.2f s  %-14s %-9s %s", line.At.Seconds(), line.Job, line.Who, line.Text)
			}
		},
	})
	if err != nil {
		t.Error(err)
	}
	for _, violation := range outcome.Violations {
		t.Error(violation)
	}
	if outcome.Page == "" {
		t.Error("no timeline was drawn")
	}
}
