package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-log/tflog"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/kueue"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainingjob"
)

// errTimeIsUp is the cause of a context that ends by the resource's own timeout, to tell it from Ctrl-C.
var errTimeIsUp = errors.New("the time is up")

// How much of what happened a diagnostic tells, and how long gathering it may take after the wait has ended.
const (
	lastEvents    = 8
	lastLogLines  = 15
	gatherTimeout = 15 * time.Second
)

// wait waits for what wait_for says and takes over what it finds. It is never an error that the wait ends early, and
// one that the run fails only with fail_on_error.
func (c *jobCluster) wait(ctx context.Context, model *trainingJobModel) diag.Diagnostics {
	goal := model.WaitFor.ValueString()
	if goal == waitForCreated {
		return nil
	}
	var diags diag.Diagnostics
	ref := model.ref()
	begin := time.Now()
	seen, err := c.follow(ctx, ref, goal)
	diags.Append(model.observe(ctx, seen)...)
	phase := seen.phase()
	if err == nil && phase != trainingjob.PhaseFailed {
		return diags
	}
	// The context may have ended, but the user wants to know why.
	gather, cancel := context.WithTimeout(context.WithoutCancel(ctx), gatherTimeout)
	defer cancel()
	if phase == trainingjob.PhaseFailed {
		summary := fmt.Sprintf("Training job %s has failed", c.subject.importID)
		detail := c.failure(gather, ref, seen)
		if model.FailOnError.ValueBool() {
			diags.AddError(summary, detail)
		} else {
			diags.AddWarning(summary, detail+"\n\nThe job stays as it is. With fail_on_error = true this would be an error.")
		}
		return diags
	}
	diags.AddWarning(fmt.Sprintf("Training job %s %s yet", c.subject.importID, notYet(goal)),
		fmt.Sprintf("Waited %s for phase %s; %s. The job goes on; the next plan shows where it is.\n\n%s",
			time.Since(begin).Round(time.Second), goal, whyEnded(err), c.situation(gather, ref, seen)))
	return diags
}

// notYet is what is said of something that was waited for in vain.
func notYet(goal string) string {
	if goal == waitForSucceeded {
		return "has not " + goal
	}
	return "is not " + goal
}

// reached says whether a wait for goal is over.
func (s sighting) reached(goal string) bool {
	switch s.phase() {
	case trainingjob.PhaseSucceeded, trainingjob.PhaseFailed:
		return true
	case trainingjob.PhaseRunning, trainingjob.PhaseEvaluating, trainingjob.PhaseCannotSave:
		return goal == waitForRunning
	default:
		return false
	}
}

// follow watches the status that the master writes, the Job for the end that no master can report, and under a queue
// the group that has to be admitted. All watches have ended when it returns. Its error is why it did not get to see the
// goal.
func (c *jobCluster) follow(ctx context.Context, ref trainingjob.JobRef, goal string) (sighting, error) {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	seen := sighting{status: trainingjob.Status{Phase: trainingjob.PhasePending}}
	jobs := make(chan *batchv1.Job)
	statuses := make(chan trainingjob.Status)
	groups := make(chan *kueue.Workload)
	ended := make(chan error, 3)
	kube := c.client.Kubernetes()
	go func() {
		ended <- cluster.WaitFor(watching, c.client, kube.BatchV1().Jobs(ref.Namespace), cluster.Named(ref.Name), func(found []*batchv1.Job) (bool, error) {
			if len(found) == 0 || found[0].UID != ref.UID {
				return false, fmt.Errorf("job %s/%s was deleted while it was waited for", ref.Namespace, ref.Name)
			}
			return false, send(watching, jobs, found[0])
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
					go func() { ended <- c.followGroup(watching, ref.Namespace, group, groups) }()
				}
			}
		case seen.group = <-groups:
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
				break // the job goes on without being explained
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

// situation says where a job is and what holds it up.
func (c *jobCluster) situation(ctx context.Context, ref trainingjob.JobRef, seen sighting) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Its phase is %s", seen.phase())
	if seen.status.StepsTotal > 0 {
		fmt.Fprintf(&b, ", at step %s of %s", thousands(seen.status.StepsDone), thousands(seen.status.StepsTotal))
	}
	if seen.status.Message != "" {
		b.WriteString(": " + seen.status.Message)
	}
	b.WriteString(".\n")
	events := c.events(ctx, ref)
	pods, err := c.pods(ctx, ref)
	if err != nil {
		fmt.Fprintf(&b, "Its pods cannot be listed: %v.\n", err)
	}
	if len(pods) == 0 && err == nil {
		b.WriteString("It has no pod yet.\n")
	}
	section(&b, "Queue:", c.explainQueue(ctx, ref, pods))
	section(&b, "Pods:", trainingjob.Explain(pods, events))
	section(&b, "Last events:", trainingjob.LastEvents(ref.Name, events, lastEvents))
	return strings.TrimSpace(b.String())
}

// failure says why a run failed.
func (c *jobCluster) failure(ctx context.Context, ref trainingjob.JobRef, seen sighting) string {
	var b strings.Builder
	switch {
	case seen.status.Message != "":
		b.WriteString(strings.TrimSuffix(seen.status.Message, ".") + ".\n")
	case seen.job != nil && jobCondition(seen.job, batchv1.JobFailed) != nil:
		condition := jobCondition(seen.job, batchv1.JobFailed)
		fmt.Fprintf(&b, "%s: %s.\n", condition.Reason, strings.TrimSuffix(condition.Message, "."))
	default:
		b.WriteString("The master gave no reason.\n")
	}
	if seen.status.StepsTotal > 0 {
		fmt.Fprintf(&b, "It was at step %s of %s.\n", thousands(seen.status.StepsDone), thousands(seen.status.StepsTotal))
	}
	events := c.events(ctx, ref)
	pods, err := c.pods(ctx, ref)
	if err == nil {
		section(&b, "Pods:", trainingjob.Explain(pods, events))
	}
	section(&b, "Last events:", trainingjob.LastEvents(ref.Name, events, lastEvents))
	section(&b, "Last lines of the master's log:", c.masterLog(ctx, pods))
	return strings.TrimSpace(b.String())
}

func section(b *strings.Builder, title string, lines []string) {
	if len(lines) > 0 {
		b.WriteString("\n" + title + "\n  " + strings.Join(lines, "\n  ") + "\n")
	}
}

// pods are those of this very job: the master's, by the label of the Job controller, and the workers', by ours.
func (c *jobCluster) pods(ctx context.Context, ref trainingjob.JobRef) ([]corev1.Pod, error) {
	list, err := c.client.Kubernetes().CoreV1().Pods(ref.Namespace).List(ctx, c.podsOf(ref))
	if err != nil {
		return nil, c.client.Wrap("list", cluster.Ref{Kind: "Pod", Namespace: ref.Namespace}, err)
	}
	var pods []corev1.Pod
	for i := range list.Items {
		if isPodOf(&list.Items[i], ref) {
			pods = append(pods, list.Items[i])
		}
	}
	return pods, nil
}

func isPodOf(pod *corev1.Pod, ref trainingjob.JobRef) bool {
	uid := string(ref.UID)
	return pod.Labels[trainingjob.LabelJobUID] == uid || pod.Labels[batchv1.ControllerUidLabel] == uid
}

// events are the namespace's, or none for who may not read them.
func (c *jobCluster) events(ctx context.Context, ref trainingjob.JobRef) []corev1.Event {
	list, err := c.client.Kubernetes().CoreV1().Events(ref.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		tflog.Warn(ctx, "events cannot be listed", map[string]any{"namespace": ref.Namespace, "error": err.Error()})
		return nil
	}
	return list.Items
}

// masterLog are the last lines of the newest master's, or none where they cannot be read.
func (c *jobCluster) masterLog(ctx context.Context, pods []corev1.Pod) []string {
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
