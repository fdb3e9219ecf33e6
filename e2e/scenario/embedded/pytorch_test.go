package embedded

import (
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/e2e/scenario"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/torchtest"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/controlplane"
)

// TestPyTorchScenariosOnTheEmbeddedCluster runs those that need PyTorch.
func TestPyTorchScenariosOnTheEmbeddedCluster(t *testing.T) {
	t.Parallel()
	torchtest.Find(t)
	for _, sc := range scenario.Scenarios(scenario.ForTests) {
		if sc.Requirements.PyTorch {
			t.Run(sc.Name, func(t *testing.T) {
				t.Parallel()
				runScenario(t, sc, controlplane.MountsAuto)
			})
		}
	}
}
