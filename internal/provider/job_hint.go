package provider

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster/jobparts"
)

// hintTime is how long an apply without wait_for watches the first pods of a job that it has created: the scheduler
// answers in milliseconds, a registry without the image in about a second, and the next plan reports whatever comes
// later. An apply of a job that starts ends as soon as it has started.
const hintTime = 2 * time.Second

// hintAtOnce warns, after a job was made, where it can be seen at once that it does not start.
func (c *jobCluster) hintAtOnce(ctx context.Context, ref trainingjob.JobRef) diag.Diagnostics {
	ctx, cancel := context.WithTimeout(ctx, hintTime)
	defer cancel()
	var reasons []string
	// An account that may not list pods gets no hint, and no error.
	_ = cluster.WaitFor(ctx, c.client, c.client.Kubernetes().CoreV1().Pods(ref.Namespace), jobparts.PodsOf(c.label, ref), func(found []*corev1.Pod) (bool, error) {
		var pods []corev1.Pod
		for _, pod := range found {
			if pod.Labels[batchv1.ControllerUidLabel] == string(ref.UID) { // a training job waits for its master's pod
				pods = append(pods, *pod)
			}
		}
		reasons = trainingjob.Blocked(c.shown(pods), nil)
		started := len(pods) > 0 && !slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return pod.Status.Phase == corev1.PodPending })
		return started || len(reasons) > 0, nil
	})
	return c.cannotStart(reasons)
}

// hint warns, when a job is read that has not started yet, about the reason. It checks nothing if the account may not
// list pods.
func (c *jobCluster) hint(ctx context.Context, ref trainingjob.JobRef) diag.Diagnostics {
	pods, err := c.pods(ctx, ref)
	if err != nil {
		return nil
	}
	var events []corev1.Event
	if trainingjob.MayBeBlocked(pods) {
		events = c.events(ctx, ref, uidsOf(pods))
	}
	return c.cannotStart(trainingjob.Blocked(c.shown(pods), events))
}

func (c *jobCluster) cannotStart(reasons []string) diag.Diagnostics {
	var diags diag.Diagnostics
	if len(reasons) > 0 {
		diags.AddWarning(fmt.Sprintf("%s %s cannot start", c.noun, c.subject.importID), fmt.Sprintf(
			"  %s\n\nThe %s exists, and starts once this problem is solved, in the cluster or in the configuration.",
			strings.Join(reasons, "\n  "), c.word))
	}
	return diags
}
