// Package forecast_test compares the forecast in terraform plan with what then happens: the real terraform plans and
// applies on an embedded cluster with a real kube-scheduler. Every evicted pod must be among those that the plan has
// named, and every pod on a node that it has named. The package runs both tutorials, and scenarios that are drawn from
// seeds.
package forecast_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/elastic-training/terraform-provider-elastic/e2e/program"
	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
	kueueclient "github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/client"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	"github.com/elastic-training/terraform-provider-elastic/simcluster"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/await"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/controlplane"
)

// cluster is shared by all tests.
var cluster *simcluster.Cluster

// lanes are how many scenarios run at the same time, each on three nodes of its own: others' pods do not tolerate
// their taint.
const lanes = 4

func laneName(lane int) string { return fmt.Sprintf("lane-%d", lane) }

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if err := providertest.Prepare(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	options := []simcluster.Option{
		// ElasticDL's tutorial, and Trainy's.
		simcluster.NodeGroup(controlplane.NodeGroup{Name: "node", Count: 3, CPU: "4", Memory: "15Gi", AllocatableCPU: "3.92"}),
		simcluster.NodeGroup(controlplane.NodeGroup{
			Name: "gpu", Count: 1, CPU: "16", Memory: "60Gi", Resources: map[string]string{"nvidia.com/gpu": "4"},
			Labels: map[string]string{"cloud.google.com/gke-accelerator": "nvidia-tesla-t4"}, Taints: []string{"nvidia.com/gpu=present:NoSchedule"},
		}),
		simcluster.Image(controlplane.AnyImage, controlplane.HostImage), simcluster.Kueue(),
		simcluster.PodSecurity("baseline"),
	}
	for lane := range lanes {
		options = append(options, simcluster.NodeGroup(controlplane.NodeGroup{
			Name: laneName(lane), Count: 3, CPU: "4", Memory: "15Gi", AllocatableCPU: "3.92",
			Labels: map[string]string{"lane": laneName(lane)}, Taints: []string{"lane=" + laneName(lane) + ":NoSchedule"},
		}))
	}
	return program.WithTrainer(func(trainer string) int {
		return simcluster.Main(m, &cluster, append(options, simcluster.Image("elastic-trainer", trainer))...)
	})
}

func client(t *testing.T) kubernetes.Interface {
	t.Helper()
	c, err := cluster.Client()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// asAdmin is the provider's configuration for the shared cluster, and the configuration that uses it.
func asAdmin(config string) string {
	return fmt.Sprintf("provider \"elastic\" {\n  config_path = %q\n}\n%s", cluster.Kubeconfig, config)
}

// pause is the time between two looks.
const pause = 100 * time.Millisecond

// eventually polls until a condition holds, and fails with the last observation.
func eventually(t *testing.T, what string, done func(ctx context.Context) (seen string, ok bool)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience.Medium)
	defer cancel()
	err := await.Until(ctx, what, pause, func(ctx context.Context) error {
		if seen, ok := done(ctx); !ok {
			return errors.New(seen)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// queues is a client for Kueue's objects.
func queues(t *testing.T) *kueueclient.Client {
	t.Helper()
	c, err := cluster.Kueue()
	if err != nil {
		t.Fatal(err)
	}
	return c
}
