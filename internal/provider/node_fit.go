package provider

import (
	"context"
	"fmt"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/placement"
)

// nodeCatalogue is the cluster's list of nodes; it is requested once, and empty if the cluster does not answer.
type nodeCatalogue struct {
	once  sync.Once
	nodes []*corev1.Node
}

// checkFits warns, at an attribute, about a pod that could run on no node of the cluster even if nothing else ran
// there. what names the pod in the sentence: "A worker of low-prio-job". It never fails a plan, and takes at most
// lookTimeout.
func (c *connection) checkFits(ctx context.Context, at path.Path, what string, pod *corev1.Pod) diag.Diagnostics {
	var diags diag.Diagnostics
	if why, never := placement.Never(pod, c.nodes(ctx)); never {
		diags.AddAttributeWarning(at, what+" fits on no node", fmt.Sprintf(
			"It would not fit on any of the cluster's %d nodes, even if the node were empty: %s. It stays Pending until a suitable node is added.",
			len(c.nodes(ctx)), why))
	}
	return diags
}

func (c *connection) nodes(ctx context.Context) []*corev1.Node {
	known := &c.planned.nodes
	known.once.Do(func() {
		if c.forecasts.mode != forecastOff { // their snapshot has them
			if s, err := c.snapshot(ctx, false); err == nil {
				known.nodes = s.Nodes
				return
			}
		}
		client, diags := c.cluster()
		if diags.HasError() || c.planned.isUnreachable() {
			return
		}
		ctx, cancel := context.WithTimeout(ctx, lookTimeout)
		defer cancel()
		// An account that may not list nodes plans without this check.
		known.nodes, _ = cluster.List[*corev1.Node](ctx, client, client.Kubernetes().CoreV1().Nodes(), metav1.ListOptions{})
	})
	return known.nodes
}
