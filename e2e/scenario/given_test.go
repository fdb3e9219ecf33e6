package scenario_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/e2e/scenario"
)

// A cluster that is there already, for the stories to be told on: STORY_KUBECONFIG is its kubeconfig, STORY_IMAGE the
// trainer's image as its nodes know it, STORY_DATA the path on every node of this repository's e2e/out/data/synthetic
// (or mnist, with MNIST_DIR), where it is another one than here. What a story needs besides, see its Needs.
const (
	kubeconfigVariable = "STORY_KUBECONFIG"
	imageVariable      = "STORY_IMAGE"
	dataVariable       = "STORY_DATA"
)

// defaultImage is the examples' own.
const defaultImage = "ghcr.io/elastic-training/elastic-trainer:0.1.0"

func TestTheStoriesAreTrueOnAGivenCluster(t *testing.T) {
	kubeconfig := os.Getenv(kubeconfigVariable)
	if kubeconfig == "" {
		t.Skipf("%s names no cluster", kubeconfigVariable)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, story := range scenario.Stories(scenario.Brief) {
		t.Run(story.Name, func(t *testing.T) {
			scenario.TellInTest(t, story, given{kubeconfig: kubeconfig}, root, "given-"+story.Name)
		})
	}
}

// given is the backend of a cluster that is there already. It is somebody's: nothing of it is broken on purpose.
type given struct{ kubeconfig string }

func (g given) Cluster(_ context.Context, story scenario.Story, place scenario.Place) (scenario.Cluster, func() error, error) {
	if story.Needs.Faults {
		return scenario.Cluster{}, nil, &scenario.LackingError{Story: story.Name, Lacks: "a given cluster is not broken on purpose"}
	}
	cluster := scenario.Cluster{Kubeconfig: g.kubeconfig, Namespace: "default", Image: defaultImage, DataDir: place.DataDir}
	if image := os.Getenv(imageVariable); image != "" {
		cluster.Image = image
	}
	if data := os.Getenv(dataVariable); data != "" {
		cluster.DataDir = data
	}
	return cluster, func() error { return nil }, nil
}
