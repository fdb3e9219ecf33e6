package provider

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-log/tflog"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/task"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
)

// wait waits for the goal of wait_for, and copies the progress of the task.
func (c *taskCluster) wait(ctx context.Context, model *taskModel) diag.Diagnostics {
	a, diags := model.spec(ctx)
	var job *batchv1.Job
	var workload *kueue.Workload
	return append(diags, c.jobCluster.wait(ctx, &model.jobModel, jobWait{
		queue: a.Queue,
		follow: func(ctx context.Context, ref task.JobRef, goal string) (err error) {
			job, err = c.follow(ctx, ref, goal)
			return err
		},
		observed: func(ctx context.Context) (bool, diag.Diagnostics) {
			if job != nil {
				workload = workloadOf(ctx, c.client, job)
				model.observe(progressOf(job, workload))
			}
			return model.Phase.ValueString() == taskFailed, nil
		},
		describe: func(ctx context.Context, _ bool) string { return c.describe(ctx, model.ref(), model, job, workload) },
	})...)
}

// follow watches the Job until it has reached the goal. It returns the last observation, nil for none. Kueue reports
// all that matters through the Job.
func (c *taskCluster) follow(ctx context.Context, ref task.JobRef, goal string) (seen *batchv1.Job, err error) {
	phase := ""
	err = cluster.WaitFor(ctx, c.client, c.client.Kubernetes().BatchV1().Jobs(ref.Namespace), cluster.Named(ref.Name), func(found []*batchv1.Job) (bool, error) {
		job, err := stillThere(ref, found)
		if err != nil {
			return false, err
		}
		seen = job
		p := progressOf(seen, nil)
		if p.phase != phase {
			phase = p.phase
			tflog.Info(ctx, fmt.Sprintf("task %s is %s", c.subject.importID, phase))
		}
		return reachedGoal(phase, goal), nil
	})
	return seen, err
}

// reachedGoal reports whether a wait is over. A task that has ended is as far as it gets.
func reachedGoal(phase, goal string) bool {
	switch goal {
	case waitForAdmitted:
		return phase != taskQueued && phase != taskSuspended
	case waitForRunning:
		return phase == taskRunning || taskFinished(phase)
	default:
		return taskFinished(phase)
	}
}

// describe reports the state of a task and its reason.
func (c *taskCluster) describe(ctx context.Context, ref task.JobRef, model *taskModel, job *batchv1.Job, workload *kueue.Workload) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Its phase is %s", model.Phase.ValueString())
	if reason := model.Reason.ValueString(); reason != "" {
		b.WriteString(": " + strings.TrimSuffix(reason, "."))
	}
	b.WriteString(".\n")
	if model.Phase.ValueString() == taskSuspended {
		fmt.Fprintf(&b, "%s\n", howToResume(ref))
	}
	about := map[types.UID]bool{ref.UID: true}
	if workload != nil {
		about[workload.UID] = true
		if reason := whyQueued(workload); reason != "" {
			section(&b, "Queue:", []string{fmt.Sprintf("workload %s in queue %s: %s", workload.Name, workload.Spec.QueueName, reason)})
		}
	}
	pods, err := c.pods(ctx, ref)
	if err != nil {
		fmt.Fprintf(&b, "Its pods cannot be listed: %v.\n", err)
	}
	if len(pods) == 0 && err == nil && job != nil && !trainingjob.IsSuspended(job) {
		b.WriteString("It has no pod yet.\n")
	}
	for i := range pods {
		about[pods[i].UID] = true
	}
	events := c.events(ctx, ref, about)
	section(&b, "Pods:", trainingjob.Explain(c.shown(pods), events))
	section(&b, "Last events:", trainingjob.EventLines(events, lastEvents))
	if pod := lastFailed(pods); pod != nil {
		section(&b, fmt.Sprintf("Last lines of pod %s:", pod.Name), c.lastLines(ctx, pod, task.ContainerName))
	}
	return strings.TrimSpace(b.String())
}

// lastFailed is the newest pod that failed by itself; nil where there is none.
func lastFailed(pods []corev1.Pod) *corev1.Pod {
	var last *corev1.Pod
	for i := range pods {
		stopped := slices.ContainsFunc(pods[i].Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
			return s.State.Terminated != nil && s.State.Terminated.ExitCode == task.ExitStopped
		})
		if pods[i].Status.Phase == corev1.PodFailed && !stopped && (last == nil || last.CreationTimestamp.Before(&pods[i].CreationTimestamp)) {
			last = &pods[i]
		}
	}
	return last
}
