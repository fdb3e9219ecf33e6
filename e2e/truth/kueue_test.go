package truth_test

import (
	"os"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/e2e/truth"
	"github.com/elastic-training/terraform-provider-elastic/simcluster"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/addon"
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

// newKueueStage starts the cluster of all situations, with Kueue and the other controllers that are built.
func newKueueStage(t *testing.T) *truth.Stage {
	t.Helper()
	controllers := addon.Built(addon.Find(os.Getenv(simcluster.BinaryVariable)))
	return stageOn(t, simcluster.Kueue(), simcluster.Controllers(controllers...))
}

// TestSituationsWithTheRealKueueTurnOutAsForecast draws $ELASTIC_TRUTH situations with queues and plays them with the
// controllers of Kueue and other projects.
func TestSituationsWithTheRealKueueTurnOutAsForecast(t *testing.T) {
	stage := newKueueStage(t)
	r := &round{
		t: t, seeds: chosen(t), shrinks: number(t, "ELASTIC_TRUTH_SHRINK", shrunk),
		tally: &truth.Tally{}, generate: truth.GenerateKueue,
	}
	for r.plays(stage) {
		stage = newKueueStage(t)
	}
	t.Log(r.tally)
}
