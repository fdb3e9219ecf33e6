package provider

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podconstants "sigs.k8s.io/kueue/pkg/controller/jobs/pod/constants"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster/jobparts"
)

// delete removes a job: its Job in the foreground, and its pods; then what else it owns, which Kubernetes' garbage
// collector has usually removed by then.
func (c *jobCluster) delete(ctx context.Context, ref trainingjob.JobRef, parts []trainingjob.Object) diag.Diagnostics {
	var diags diag.Diagnostics
	if err := jobparts.DeleteJob(ctx, c.client, c.label, ref); err != nil {
		c.explainStuck(ctx, &diags, ref, err)
		return diags
	}
	for _, part := range parts {
		if err := jobparts.Delete(ctx, c.client, part, ref); err != nil {
			c.subject.explain(&diags, err)
		}
	}
	return diags
}

// explainStuck names each pod that is not deleted, with the cause and the remedy.
func (c *jobCluster) explainStuck(ctx context.Context, diags *diag.Diagnostics, ref trainingjob.JobRef, err error) {
	if ctx.Err() == nil {
		c.subject.explain(diags, err)
		return
	}
	gather, cancel := context.WithTimeout(context.WithoutCancel(ctx), gatherTimeout)
	defer cancel()
	summary := fmt.Sprintf("%s %s is not deleted yet", c.noun, c.subject.importID)
	const again = "\n\nRun the same command again when they are gone. timeouts.delete limits the wait."
	if stay := c.podsThatStay(gather, ref); len(stay) > 0 {
		diags.AddError(summary, "It is marked for deletion, but these pods do not terminate:\n\n  "+strings.Join(stay, "\n  ")+again)
		return
	}
	job, getErr := cluster.Get(gather, c.client, c.client.Kubernetes().BatchV1().Jobs(ref.Namespace), ref.Name)
	if getErr != nil || job.UID != ref.UID || job.DeletionTimestamp == nil {
		c.subject.explain(diags, err)
		return
	}
	diags.AddError(summary, c.whyTerminating(gather, job, terminatingJob(job))+again)
}

func (c *jobCluster) whyItStays(ctx context.Context, pod *corev1.Pod) string {
	name := "pod " + pod.Name
	switch {
	case pod.DeletionTimestamp == nil:
		return fmt.Sprintf("%s has not been deleted yet: the garbage collector of kube-controller-manager deletes it; check that it runs, or run kubectl delete pod -n %s %s", name, pod.Namespace, pod.Name)
	case slices.Contains(pod.Finalizers, podconstants.PodFinalizer) && trainingjob.GroupOf(pod.Labels) != "":
		return fmt.Sprintf("%s is kept by Kueue until its group's Workload is deleted: kubectl delete workload -n %s %s; check that Kueue runs", name, pod.Namespace, trainingjob.GroupOf(pod.Labels))
	case len(pod.Finalizers) > 0:
		return fmt.Sprintf("%s is held by finalizer %s: the controller that set it must remove it; if that controller no longer exists: kubectl patch pod -n %s %s --type=merge -p '{\"metadata\":{\"finalizers\":null}}'",
			name, strings.Join(pod.Finalizers, ", "), pod.Namespace, pod.Name)
	case pod.Spec.NodeName == "":
		return name + " is on no node, and will be removed without further action"
	}
	force := fmt.Sprintf("kubectl delete pod -n %s %s --grace-period=0 --force", pod.Namespace, pod.Name)
	node, err := c.client.Kubernetes().CoreV1().Nodes().Get(ctx, pod.Spec.NodeName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return fmt.Sprintf("%s was on node %s, which no longer exists: %s", name, pod.Spec.NodeName, force)
	}
	if err == nil {
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
				return fmt.Sprintf("%s is on node %s, which is not ready (%s): if the machine is gone, kubectl delete node %s; otherwise repair it", name, node.Name, condition.Reason, node.Name)
			}
		}
	}
	grace := "its grace period"
	if pod.DeletionGracePeriodSeconds != nil {
		grace = fmt.Sprintf("its grace period of %d s", *pod.DeletionGracePeriodSeconds)
	}
	return fmt.Sprintf("%s on node %s is terminating, with %s; if it still exists after that: %s", name, pod.Spec.NodeName, grace, force)
}
