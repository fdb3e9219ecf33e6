// Package promises_test checks what the README promises, on one embedded cluster, in about two minutes: both tutorials
// as scenarios, every resource applied and destroyed, one forecast for each outcome, and a job whose worker is killed.
// `make test` runs it; the other end-to-end packages, which check the same in depth, are part of `make test-all`.
package promises_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/e2e/program"
	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
	"github.com/elastic-training/terraform-provider-elastic/simcluster"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/controlplane"
)

// cluster is shared by all tests, which run one after the other: each forecast depends on all pods. Its nodes are those
// of both tutorials. Tasks without a toleration cannot use the GPU node.
var cluster *simcluster.Cluster

// trainer is the program elastic-trainer, also that of the trainer's image.
var trainer string

// root is the repository, seen from this folder.
const root = "../.."

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if err := providertest.Prepare(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return program.WithTrainer(func(path string) int {
		trainer = path
		return simcluster.Main(m, &cluster,
			simcluster.NodeGroup(controlplane.NodeGroup{Name: "node", Count: 3, CPU: "4", Memory: "15Gi", AllocatableCPU: "3.92"}),
			simcluster.NodeGroup(controlplane.NodeGroup{
				Name: "gpu", Count: 1, CPU: "16", Memory: "60Gi", AllocatableCPU: "15.89", Resources: map[string]string{"nvidia.com/gpu": "4"},
				Labels: map[string]string{"cloud.google.com/gke-accelerator": "nvidia-tesla-t4"}, Taints: []string{"nvidia.com/gpu=present:NoSchedule"},
			}),
			simcluster.Image(controlplane.AnyImage, controlplane.HostImage), simcluster.Image("elastic-trainer", trainer),
			simcluster.Image("ghcr.io/elastic-training/elastic-trainer", trainer), simcluster.Kueue(),
		)
	})
}

// terminal is one in which terraform knows the cluster by its environment, and a namespace as variable.
func terminal(t *testing.T) (r *providertest.Terminal, namespace string) {
	t.Helper()
	r, namespace = providertest.NewTerminalWith(t, map[string]string{"KUBE_CONFIG_PATH": cluster.Kubeconfig}), cluster.Namespace(t)
	r.Environment = append(r.Environment, "TF_VAR_namespace="+namespace)
	return r, namespace
}

// config is a file of testdata.
func config(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// succeeds runs terraform, and returns what it printed.
func succeeds(t *testing.T, r *providertest.Terminal, config string, arguments ...string) string {
	t.Helper()
	printed, code := r.Run(t, config, arguments...)
	if code != 0 {
		t.Fatalf("terraform %v exited with %d:\n%s", arguments, code, printed)
	}
	return printed
}

// destroyAtTheEnd destroys the configuration when the test has ended, however it ends.
func destroyAtTheEnd(t *testing.T, r *providertest.Terminal, config string) {
	t.Cleanup(func() {
		if printed, code := r.Run(t, config, "destroy", "-auto-approve"); code != 0 {
			t.Errorf("terraform destroy exited with %d:\n%s", code, printed)
		}
	})
}
