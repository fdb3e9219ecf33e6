package scenario_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/e2e/scenario"
	"github.com/elastic-training/terraform-provider-elastic/internal/eventlog"
)

// A cluster that is there already, for the stories to be told on: STORY_KUBECONFIG is its kubeconfig, STORY_IMAGE the
// trainer's image as its nodes know it, STORY_DATA a directory for records, here and at the same path on every node.
// What each story needs of its nodes and of Kueue is at its test. All of them make and destroy what they need besides.
const (
	kubeconfigVariable = "STORY_KUBECONFIG"
	imageVariable      = "STORY_IMAGE"
	dataVariable       = "STORY_DATA"
)

// defaultImage is the examples' own.
const defaultImage = "ghcr.io/elastic-training/elastic-trainer:0.1.0"

// Three nodes of 4 CPUs, of which the system leaves pods a little less.
func TestTheTutorialsStoryIsTrueOnAGivenCluster(t *testing.T) {
	tellOnGivenCluster(t, scenario.ElasticSchedulingPromises(), func(ctx context.Context, s scenario.Setting) ([]eventlog.Event, error) {
		story := scenario.ElasticScheduling{Setting: s, LowLasts: 40 * time.Second, HighLasts: 10 * time.Second}
		return story.Run(ctx)
	})
}

// Kueue, and a node with four GPUs (resource nvidia.com/gpu) that has the label of GKE's nodes with T4s.
func TestTheQueueStoryIsTrueOnAGivenCluster(t *testing.T) {
	tellOnGivenCluster(t, scenario.QueuePrioritiesPromises(), func(ctx context.Context, s scenario.Setting) ([]eventlog.Event, error) {
		story := scenario.QueuePriorities{Setting: s, HighLasts: 8 * time.Second}
		return story.Run(ctx)
	})
}

// Kueue with its pod integration, and room for five CPUs.
func TestTheStoryOfAnElasticJobUnderAQueueIsTrueOnAGivenCluster(t *testing.T) {
	tellOnGivenCluster(t, scenario.UnderAQueuePromises(), func(ctx context.Context, s scenario.Setting) ([]eventlog.Event, error) {
		story := scenario.UnderAQueue{Setting: s, Epochs: 3, Pace: "50ms"}
		return story.Run(ctx)
	})
}

// tellOnGivenCluster tells a story on the cluster that the environment names and expects its promises to be kept.
func tellOnGivenCluster(t *testing.T, promises scenario.Promises, run func(context.Context, scenario.Setting) ([]eventlog.Event, error)) {
	kubeconfig := os.Getenv(kubeconfigVariable)
	if kubeconfig == "" {
		t.Skipf("%s names no cluster", kubeconfigVariable)
	}
	tools, err := scenario.FindTools()
	if err != nil {
		t.Fatal(err)
	}
	image, data := os.Getenv(imageVariable), os.Getenv(dataVariable)
	if image == "" {
		image = defaultImage
	}
	if data == "" {
		data = t.TempDir()
	}
	if err := scenario.PrepareData(t.Context(), tools.Trainer, os.Getenv("MNIST_DIR"), data); err != nil {
		t.Fatal(err)
	}
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join("..", "out", "given-"+t.Name())
	if err := os.RemoveAll(out); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err = filepath.Abs(out); err != nil {
		t.Fatal(err)
	}

	// Ended before the test binary's own limit, so that terraform destroys in order.
	ctx := t.Context()
	if deadline, ok := t.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-time.Minute))
		defer cancel()
	}
	var narrator scenario.Narrator
	events, err := run(ctx, scenario.Setting{
		Cluster:  scenario.Cluster{Kubeconfig: kubeconfig, Namespace: "default", Image: image, DataDir: data},
		Tools:    tools,
		Examples: examples,
		Dir:      out,
		Observe: func(event eventlog.Event) {
			for _, line := range narrator.Tell(event) {
				t.Logf("%7.2f s  %-14s %-9s %s", line.At.Seconds(), line.Job, line.Who, line.Text)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, violation := range promises.Check(events) {
		t.Error(violation)
	}
}
