// Package task_test is elastic_task on a cluster: the real terraform, the provider in this process, and an embedded
// cluster whose nodes run the tasks' commands for real. The tests check from outside what terraform plans, its state
// and its output, and what happens to a task that is changed, deleted or fails.
package task_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"k8s.io/client-go/kubernetes"

	"github.com/elastic-training/terraform-provider-elastic/e2e/program"
	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
	kueueclient "github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/client"
	"github.com/elastic-training/terraform-provider-elastic/simcluster"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/controlplane"
)

// cluster is shared by all tests, each of which has a namespace of its own.
var cluster *simcluster.Cluster

// gke is the label by which GKE marks the nodes of an accelerator.
const gke = "cloud.google.com/gke-accelerator"

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if err := providertest.Prepare(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return program.WithTrainer(func(trainer string) int { // with which a gang's pods start
		return simcluster.Main(m, &cluster,
			simcluster.NodeGroup(controlplane.NodeGroup{Name: "cpu", Count: 2, CPU: "8", Memory: "32Gi"}),
			simcluster.NodeGroup(controlplane.NodeGroup{
				Name: "t4", Count: 1, CPU: "8", Memory: "30Gi", Labels: map[string]string{gke: "nvidia-tesla-t4"}, Resources: map[string]string{"nvidia.com/gpu": "4"},
			}),
			simcluster.Image(controlplane.AnyImage, controlplane.HostImage), simcluster.Image("elastic-trainer", trainer), simcluster.Kueue(), simcluster.PodSecurity("baseline"),
		)
	})
}

// steps runs the steps of a test through the real terraform and the provider in this process.
func steps(t *testing.T, steps ...resource.TestStep) {
	t.Helper()
	resource.Test(t, resource.TestCase{
		IsUnitTest:               true,
		ProtoV6ProviderFactories: providertest.Factories(t, nil),
		Steps:                    steps,
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

// queues is a client for Kueue's objects.
func queues(t *testing.T) *kueueclient.Client {
	t.Helper()
	c, err := cluster.Kueue()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// touch makes an empty file, for which a task's command on the same host waits.
func touch(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}
