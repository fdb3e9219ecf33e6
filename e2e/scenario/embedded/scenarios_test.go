package embedded

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/e2e/scenario"
	"github.com/elastic-training/terraform-provider-elastic/simcluster"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/controlplane"
)

// TestScenariosOnTheEmbeddedCluster runs every scenario of the catalogue but PyTorch's, on MNIST's images when MNIST_DIR names them.
// Event logs and timelines stay below e2e/out.
//
// The tests of this package wait more than they compute: as many run at once as there are processors.
func TestScenariosOnTheEmbeddedCluster(t *testing.T) {
	t.Parallel()
	for _, sc := range scenario.Scenarios(scenario.ForTests) {
		if sc.Requirements.PyTorch {
			continue
		}
		t.Run(sc.Name, func(t *testing.T) {
			t.Parallel()
			runScenario(t, sc, controlplane.MountsAuto)
		})
	}
}

// TestElasticSchedulingWithoutMountNamespaces runs the first scenario with rewritten paths instead of mount namespaces.
func TestElasticSchedulingWithoutMountNamespaces(t *testing.T) {
	t.Parallel()
	runScenario(t, scenario.Scenarios(scenario.ForTests)[0], controlplane.MountsRewrite)
}

func runScenario(t *testing.T, sc scenario.Scenario, mounts string) {
	backend, err := Find()
	if err != nil {
		if os.Getenv(simcluster.BinaryVariable) == "" {
			t.Skipf("a scenario needs executables: %v", err)
		}
		t.Fatal(err)
	}
	backend.Mounts = mounts
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	scenario.RunInTest(t, sc, backend, root, "test-"+sc.Name+"-"+mounts)
}
