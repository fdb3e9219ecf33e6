package truth_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/e2e/program"
	"github.com/elastic-training/terraform-provider-elastic/e2e/truth"
	"github.com/elastic-training/terraform-provider-elastic/e2e/upstream"
	"github.com/elastic-training/terraform-provider-elastic/simcluster"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/controlplane"
)

// nodes are those of all situations.
func nodes() []simcluster.Option {
	return []simcluster.Option{
		simcluster.NodeGroup(controlplane.NodeGroup{Name: "cpu", Count: 4, CPU: "4", Memory: "15Gi"}),
		simcluster.NodeGroup(controlplane.NodeGroup{
			Name: "gpu", Count: 2, CPU: "8", Memory: "32Gi", Resources: map[string]string{"nvidia.com/gpu": "4"}, Labels: map[string]string{"gpu": "t4"},
		}),
		simcluster.Image(controlplane.AnyImage, controlplane.HostImage),
	}
}

// newUpstreamStage starts the cluster of all situations, with the real Kueue and the other controllers that were built.
func newUpstreamStage(t *testing.T) *truth.Stage {
	t.Helper()
	dir := os.Getenv(upstream.Variable)
	if dir == "" {
		t.Skipf("$%s names no folder with the controllers of other projects: make truth-upstream", upstream.Variable)
	}
	projects := upstream.Built(dir)
	if len(projects) == 0 {
		t.Fatalf("$%s: %s contains no controller", upstream.Variable, dir)
	}
	cluster := simcluster.Start(t, nodes()...)
	work, err := filepath.Abs(filepath.Join(results, "upstream"))
	if err != nil {
		t.Fatal(err)
	}
	stopControllers, err := upstream.Start(t.Context(), upstream.Options{Kubeconfig: cluster.Kubeconfig, Programs: dir, Work: work, Projects: projects})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stopControllers)
	simulator, err := program.Simulator(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	stage, stop, err := truth.NewStage(t.Context(), cluster, simulator)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return stage
}

// TestSituationsWithTheRealKueueTurnOutAsForecast draws $ELASTIC_TRUTH situations with queues and plays them with the
// controllers of Kueue and other projects.
func TestSituationsWithTheRealKueueTurnOutAsForecast(t *testing.T) {
	stage := newUpstreamStage(t)
	r := &round{t: t, seeds: chosen(t), shrinks: number(t, "ELASTIC_TRUTH_SHRINK", shrunk), tally: &truth.Tally{}, generate: truth.GenerateUpstream}
	for r.plays(stage) {
		stage = newUpstreamStage(t)
	}
	t.Log(r.tally)
}
