package promises_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/e2e/scenario"
)

// TestBothTutorialsHoldTheirAssertions runs the scenarios of the tutorials: a training job that loses a worker to a more
// important one and grows back, and a task that Kueue evicts and admits again. Logs and timelines stay below e2e/out.
func TestBothTutorialsHoldTheirAssertions(t *testing.T) {
	repository, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, sc := range scenario.Scenarios(scenario.ForTests)[:2] {
		t.Run(sc.Name, func(t *testing.T) {
			scenario.RunInTest(t, sc, sharedCluster{}, repository, "promise-"+sc.Name)
		})
	}
}

// sharedCluster is a backend of scenarios that gives each of them this package's cluster.
type sharedCluster struct{}

func (sharedCluster) Cluster(_ context.Context, _ scenario.Scenario, where scenario.ClusterOptions) (scenario.Cluster, func() error, error) {
	return scenario.Cluster{
		Kubeconfig: cluster.Kubeconfig, Namespace: "default", Image: "elastic-trainer:test",
		DataDir: where.DataDir, SharedDir: filepath.Join(where.Out, "shared"),
	}, func() error { return nil }, nil
}
