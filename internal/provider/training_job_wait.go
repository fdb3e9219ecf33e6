package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-log/tflog"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/wording"
)

// wait waits for the goal of wait_for, and copies what the master has reported.
func (c *trainingJobCluster) wait(ctx context.Context, model *trainingJobModel) diag.Diagnostics {
	var seen observation
	return c.jobCluster.wait(ctx, &model.jobModel, jobWait{
		queue: model.text("queue.name").ValueString(),
		follow: func(ctx context.Context, ref trainingjob.JobRef, goal string) (err error) {
			seen, err = c.follow(ctx, ref, goal)
			return err
		},
		observed: func(ctx context.Context) (bool, diag.Diagnostics) {
			return seen.phase() == trainingjob.PhaseFailed, model.observe(ctx, seen)
		},
		describe: func(ctx context.Context, failed bool) string {
			if failed {
				return c.failure(ctx, model.ref(), seen)
			}
			return c.situation(ctx, model.ref(), seen)
		},
	})
}

// reached reports whether a wait for goal is over. A status alone may be old: its Job may have been suspended since, or
// its group deactivated, so that a job counts as running only once both have been observed.
func (s observation) reached(goal string) bool {
	if !s.phase().Finished() && (s.job == nil || s.groupPending) {
		return false
	}
	switch s.phase() {
	case trainingjob.PhaseSucceeded, trainingjob.PhaseFailed:
		return true
	case trainingjob.PhaseRunning, trainingjob.PhaseEvaluating, trainingjob.PhaseCannotSave:
		return goal == waitForRunning
	default:
		return false
	}
}

// follow watches the status that the master writes, the Job for an end that no master can report, and in a queue the
// group that has to be admitted. All watches have ended when it returns. Its error is the reason why it did not observe
// the goal.
func (c *trainingJobCluster) follow(ctx context.Context, ref trainingjob.JobRef, goal string) (observation, error) {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	seen := observation{status: trainingjob.Status{Phase: trainingjob.PhasePending}}
	jobs := make(chan *batchv1.Job)
	statuses := make(chan trainingjob.Status)
	groups := make(chan *kueue.Workload)
	ended := make(chan error, 3)
	kube := c.client.Kubernetes()
	go func() {
		ended <- cluster.WaitFor(watching, c.client, kube.BatchV1().Jobs(ref.Namespace), cluster.Named(ref.Name), func(found []*batchv1.Job) (bool, error) {
			job, err := stillThere(ref, found)
			if err != nil {
				return false, err
			}
			return false, send(watching, jobs, job)
		})
	}()
	go func() {
		ended <- cluster.WaitFor(watching, c.client, kube.CoreV1().ConfigMaps(ref.Namespace), cluster.Named(trainingjob.StatusName(ref.Name)), func(found []*corev1.ConfigMap) (bool, error) {
			if len(found) == 0 {
				return false, nil
			}
			status, err := trainingjob.DecodeStatus(found[0])
			if err != nil {
				return false, err
			}
			return false, send(watching, statuses, status)
		})
	}()
	running := 2
	var result error
	group := ""
	for running > 0 {
		select {
		case seen.job = <-jobs:
			if group == "" {
				if group = trainingjob.GroupOf(seen.job.Spec.Template.Labels); group != "" {
					running++
					seen.groupPending = true
					go func() { ended <- c.followGroup(watching, ref.Namespace, group, groups) }()
				}
			}
		case seen.group = <-groups:
			seen.groupPending = false
		case status := <-statuses:
			if status.Phase != seen.status.Phase {
				tflog.Info(ctx, fmt.Sprintf("training job %s is %s", c.subject.importID, status.Phase), map[string]any{
					"message": status.Message, "step": status.StepsDone, "steps": status.StepsTotal,
					"workers_running": status.WorkersRunning, "workers_pending": status.WorkersPending,
				})
			}
			seen.status = status
		case err := <-ended:
			running--
			if errors.Is(err, errNoWorkloads) && ctx.Err() == nil {
				seen.groupPending = false // the job continues without being explained
				break
			}
			if result == nil {
				result = err
			}
			stop()
		}
		if seen.reached(goal) {
			stop()
		}
	}
	if seen.reached(goal) {
		return seen, nil
	}
	return seen, result
}

func send[T any](ctx context.Context, to chan<- T, value T) error {
	select {
	case to <- value:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// situation describes the progress of a job and what blocks it.
func (c *trainingJobCluster) situation(ctx context.Context, ref trainingjob.JobRef, seen observation) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Its phase is %s", seen.phase())
	if seen.status.StepsTotal > 0 {
		fmt.Fprintf(&b, ", at step %s of %s", wording.Count(seen.status.StepsDone), wording.Count(seen.status.StepsTotal))
	}
	if seen.status.Message != "" {
		b.WriteString(": " + seen.status.Message)
	}
	b.WriteString(".\n")
	if seen.phase() == trainingjob.PhaseSuspended {
		fmt.Fprintf(&b, "%s\n", howToResume(ref))
	}
	pods, err := c.pods(ctx, ref)
	if err != nil {
		fmt.Fprintf(&b, "Its pods cannot be listed: %v.\n", err)
	}
	if len(pods) == 0 && err == nil {
		b.WriteString("It has no pod yet.\n")
	}
	workloads, err := c.workloads(ctx, ref, pods)
	if err != nil {
		section(&b, "Queue:", []string{fmt.Sprintf("(the workloads of namespace %s cannot be read: %v)", ref.Namespace, err)})
	} else {
		section(&b, "Queue:", explainQueue(pods, workloads))
	}
	events := c.events(ctx, ref, c.objectsOf(ctx, ref, seen, pods, workloads))
	section(&b, "Pods:", trainingjob.Explain(c.shown(pods), events))
	section(&b, "Last events:", trainingjob.EventLines(events, lastEvents))
	return strings.TrimSpace(b.String())
}

// failure is the reason why a run failed.
func (c *trainingJobCluster) failure(ctx context.Context, ref trainingjob.JobRef, seen observation) string {
	var b strings.Builder
	switch {
	case seen.status.Message != "" && seen.status.Phase == trainingjob.PhaseFailed:
		b.WriteString(strings.TrimSuffix(seen.status.Message, ".") + ".\n")
	case seen.job != nil && trainingjob.JobCondition(seen.job, batchv1.JobFailed) != nil:
		condition := trainingjob.JobCondition(seen.job, batchv1.JobFailed)
		fmt.Fprintf(&b, "%s: %s.\n", condition.Reason, strings.TrimSuffix(condition.Message, "."))
	default:
		b.WriteString("The master gave no reason.\n")
	}
	if seen.status.StepsTotal > 0 {
		fmt.Fprintf(&b, "It was at step %s of %s.\n", wording.Count(seen.status.StepsDone), wording.Count(seen.status.StepsTotal))
	}
	pods, err := c.pods(ctx, ref)
	workloads, _ := c.workloads(ctx, ref, pods) // without them their events are missing, and nothing else
	events := c.events(ctx, ref, c.objectsOf(ctx, ref, seen, pods, workloads))
	if err == nil {
		section(&b, "Pods:", trainingjob.Explain(c.shown(pods), events))
	}
	section(&b, "Last events:", trainingjob.EventLines(events, lastEvents))
	section(&b, "Last lines of the master's log:", c.masterLog(ctx, pods))
	return strings.TrimSpace(b.String())
}

// objectsOf are the UIDs of the objects of a job that Events are about: its Jobs, their pods, and Kueue's Workloads of
// them.
func (c *trainingJobCluster) objectsOf(
	ctx context.Context, ref trainingjob.JobRef, seen observation, pods []corev1.Pod, workloads []kueue.Workload,
) map[types.UID]bool {
	objects := map[types.UID]bool{ref.UID: true}
	for i := range pods {
		objects[pods[i].UID] = true
	}
	for i := range workloads {
		objects[workloads[i].UID] = true
	}
	if seen.group != nil {
		objects[seen.group.UID] = true
	}
	if seen.job != nil && trainingjob.GroupOf(seen.job.Spec.Template.Labels) != "" {
		minimum, err := cluster.Get(ctx, c.client, c.client.Kubernetes().BatchV1().Jobs(ref.Namespace), trainingjob.MinJobName(ref.Name))
		if err == nil && trainingjob.OwnedBy(minimum, ref) {
			objects[minimum.UID] = true
		}
	}
	return objects
}

// masterLog are the last lines of the newest master's, or none where they cannot be read.
func (c *trainingJobCluster) masterLog(ctx context.Context, pods []corev1.Pod) []string {
	var newest *corev1.Pod
	for i := range pods {
		isMaster := pods[i].Labels[trainingjob.LabelRole] == trainingjob.RoleMaster
		if isMaster && (newest == nil || newest.CreationTimestamp.Before(&pods[i].CreationTimestamp)) {
			newest = &pods[i]
		}
	}
	if newest == nil {
		return nil
	}
	return c.lastLines(ctx, newest, trainingjob.RoleMaster)
}
