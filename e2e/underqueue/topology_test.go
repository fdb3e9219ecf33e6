package underqueue_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

// TestARequiredTopologyIsWaitedForAndAPreferredOneIsNot has a topology of two domains, its nodes of 8 CPUs each. The master
// of one CPU and two workers of four do not fit into one of them; without the master the workers would. It runs alone: it
// needs more than half of the cluster.
func TestARequiredTopologyIsWaitedForAndAPreferredOneIsNot(t *testing.T) {
	p := newPlace(t)
	queue := strings.Replace(p.queue("9"), "  name = \""+p.ns+"\"\n", fmt.Sprintf(`
  name          = %[1]q
  node_labels   = { "kubernetes.io/os" = "linux" }
  topology_name = elastic_topology.test.name
`, p.ns), 1) + fmt.Sprintf(`
resource "elastic_topology" "test" {
  name   = %[1]q
  levels = [{ node_label = "kubernetes.io/hostname" }]
}
`, p.ns)
	config := func(topology, goal string) string {
		return asAdmin() + queue + p.job(fmt.Sprintf(`
  workers  = { min = 2, max = 2, resources = { requests = { cpu = "4", memory = "64Mi" } } }
  topology = { %s = "kubernetes.io/hostname" }
  wait_for = %q
  timeouts = { delete = "60s" }
`, topology, goal))
	}
	required, preferred := config("required", "created"), config("preferred", "running")
	p.steps(
		resource.TestStep{Config: required, ConfigPlanChecks: planned(plancheck.ResourceActionCreate)},
		resource.TestStep{PreConfig: func() {
			p.await("a Workload that waits for room in a domain", func(ctx context.Context) (string, bool, error) {
				list, err := p.kueue.Workloads(p.ns).List(ctx, metav1.ListOptions{})
				if err != nil {
					return "", false, err
				}
				for _, w := range list.Items {
					for _, c := range w.Status.Conditions {
						if c.Type == kueue.WorkloadQuotaReserved && strings.Contains(c.Message, "topology \""+p.ns+"\"") {
							return c.Message, c.Status == metav1.ConditionFalse, nil
						}
					}
				}
				return fmt.Sprint(list.Items), false, nil
			})
		}, RefreshState: true},
		resource.TestStep{Config: required, ConfigPlanChecks: planned(plancheck.ResourceActionNoop), ConfigStateChecks: phaseIs(trainingjob.PhaseQueued)},
		resource.TestStep{Config: preferred, ConfigPlanChecks: planned(plancheck.ResourceActionDestroyBeforeCreate), ConfigStateChecks: phaseIs(trainingjob.PhaseRunning)},
		resource.TestStep{PreConfig: func() {
			p.await("three pods on the nodes that their topology chooses", func(ctx context.Context) (string, bool, error) {
				pods, err := p.kube.CoreV1().Pods(p.ns).List(ctx, metav1.ListOptions{})
				if err != nil {
					return "", false, err
				}
				nodes, seen := map[string]bool{}, []string{}
				for _, pod := range pods.Items {
					seen = append(seen, fmt.Sprintf("%s on %q by %v", pod.Name, pod.Spec.NodeName, pod.Spec.NodeSelector))
					if pod.Spec.NodeSelector[corev1.LabelHostname] == pod.Spec.NodeName {
						nodes[pod.Spec.NodeName] = true
					}
				}
				return strings.Join(seen, "; "), len(pods.Items) == 3 && len(nodes) == 2 && !nodes[""], nil
			})
		}, Config: preferred, ConfigPlanChecks: planned(plancheck.ResourceActionNoop)},
	)
	p.nothingLeft()
}
