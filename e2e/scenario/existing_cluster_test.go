package scenario_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/e2e/scenario"
)

// An existing cluster to run the scenarios on: SCENARIO_KUBECONFIG is its kubeconfig, SCENARIO_IMAGE the trainer's
// image as its nodes know it, SCENARIO_DATA the path on every node of this repository's e2e/out/data/synthetic (or
// mnist, with MNIST_DIR), if it differs from the path here. Requirements lists what else a scenario needs.
const (
	kubeconfigVariable = "SCENARIO_KUBECONFIG"
	imageVariable      = "SCENARIO_IMAGE"
	dataVariable       = "SCENARIO_DATA"
)

// defaultImage is the examples' own.
const defaultImage = "ghcr.io/elastic-training/elastic-trainer:0.1.0"

func TestScenariosOnAnExistingCluster(t *testing.T) {
	kubeconfig := os.Getenv(kubeconfigVariable)
	if kubeconfig == "" {
		t.Skipf("%s names no cluster", kubeconfigVariable)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, sc := range scenario.Scenarios(scenario.ForTests) {
		t.Run(sc.Name, func(t *testing.T) {
			scenario.RunInTest(t, sc, existingCluster{kubeconfig: kubeconfig}, root, "existing-"+sc.Name)
		})
	}
}

// existingCluster is the backend of an existing cluster. It injects no faults into it.
type existingCluster struct{ kubeconfig string }

func (e existingCluster) Cluster(_ context.Context, sc scenario.Scenario, options scenario.ClusterOptions) (scenario.Cluster, func() error, error) {
	if sc.Requirements.Faults {
		return scenario.Cluster{}, nil, &scenario.UnsupportedError{Scenario: sc.Name, Reason: "no faults are injected into an existing cluster"}
	}
	if sc.Requirements.PyTorch {
		return scenario.Cluster{}, nil, &scenario.UnsupportedError{Scenario: sc.Name, Reason: "its nodes share no directory with this machine"}
	}
	cluster := scenario.Cluster{Kubeconfig: e.kubeconfig, Namespace: "default", Image: defaultImage, DataDir: options.DataDir}
	if image := os.Getenv(imageVariable); image != "" {
		cluster.Image = image
	}
	if data := os.Getenv(dataVariable); data != "" {
		cluster.DataDir = data
	}
	return cluster, func() error { return nil }, nil
}
