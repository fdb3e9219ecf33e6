// Package examples_test applies every example of the repository, and every block of HCL in its documents, on an
// embedded cluster, from a copy outside of the repository. The next plan must be empty, and a destroy must leave
// nothing. A table of this package lists what else an example needs, with the reason.
package examples_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/e2e/program"
	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
	"github.com/elastic-training/terraform-provider-elastic/simcluster"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/controlplane"
)

// cluster is shared by all examples.
var cluster *simcluster.Cluster

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if err := providertest.Prepare(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return program.WithTrainer(func(trainer string) int {
		return simcluster.Main(m, &cluster,
			simcluster.NodeGroup(controlplane.NodeGroup{Name: "cpu", Count: 4, CPU: "8", Memory: "32Gi"}),
			simcluster.NodeGroup(controlplane.NodeGroup{
				Name: "t4", Count: 1, CPU: "16", Memory: "60Gi",
				Labels: map[string]string{"cloud.google.com/gke-accelerator": "nvidia-tesla-t4"}, Resources: map[string]string{"nvidia.com/gpu": "4"},
			}),
			simcluster.Image("elastic-trainer", trainer),
			simcluster.Image("elastic-pytorch", trainer), // that of examples/pytorch/Dockerfile has it as its entrypoint
			simcluster.Image("debian", controlplane.HostImage),
			simcluster.Kueue(),
		)
	})
}
