package fakekueue_test

import (
	"os"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/simcluster"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/controlplane"
)

// cluster is shared by all tests, each of which has a namespace, queues and flavors of its own.
var cluster *simcluster.Cluster

// The nodes have room for whatever the queues admit: here quota decides.
const (
	gpuNodes = "t4"
	gpuLabel = "cloud.google.com/gke-accelerator"
	gpuKind  = "nvidia-tesla-t4"
	gpu      = "nvidia.com/gpu"
)

func TestMain(m *testing.M) {
	os.Exit(simcluster.Main(m, &cluster,
		simcluster.Queueing(),
		simcluster.NodeGroup(controlplane.NodeGroup{Name: "cpu", Count: 1, CPU: "64", Memory: "256Gi"}),
		simcluster.NodeGroup(controlplane.NodeGroup{
			Name: gpuNodes, Count: 1, CPU: "16", Memory: "64Gi", Resources: map[string]string{gpu: "4"},
			Labels: map[string]string{gpuLabel: gpuKind}, Taints: []string{gpu + "=present:NoSchedule"},
		}),
		simcluster.Image(controlplane.AnyImage, controlplane.HostImage),
	))
}
