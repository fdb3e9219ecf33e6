package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-log/tflog"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/wording"
)

// errTimeIsUp is the cause of a context that ends by the resource's own timeout, as opposed to Ctrl-C.
var errTimeIsUp = errors.New("the time limit was reached")

// Limits of the events in a diagnostic, and of the time to gather them after the wait has ended.
const (
	lastEvents    = 8
	lastLogLines  = 15
	gatherTimeout = 15 * time.Second
)

// jobWait is what a wait needs of one kind of jobs.
type jobWait struct {
	queue string // in which the job waits; "" for none
	// follow watches the job until it has reached the goal of wait_for. Its error is why it has not.
	follow func(ctx context.Context, ref trainingjob.JobRef, goal string) error
	// observed copies what was seen last, and reports whether the run has failed.
	observed func(ctx context.Context) (failed bool, diags diag.Diagnostics)
	// describe is the state of the job, and what blocks it or why it has failed.
	describe func(ctx context.Context, failed bool) string
}

// wait waits for the goal of wait_for and copies the result. It is never an error that the wait ends early, and an
// error that the run fails only with fail_on_error.
func (c *jobCluster) wait(ctx context.Context, m *jobModel, w jobWait) diag.Diagnostics {
	ref, goal, begin := m.ref(), m.WaitFor.ValueString(), time.Now()
	if goal == waitForCreated {
		return nil
	}
	watching, end := c.whileQueueExists(ctx, ref.Namespace, w.queue)
	defer end()
	err := w.follow(watching, ref, goal)
	// The context may have ended, but the user needs the reason.
	gather, cancel := context.WithTimeout(context.WithoutCancel(ctx), gatherTimeout)
	defer cancel()
	failed, diags := w.observed(gather)
	if gone, deleted := c.endedByDeletion(gather, goal, err); deleted {
		diags.Append(gone)
	} else if failed {
		diags.Append(c.hasFailed(m.FailOnError.ValueBool(), w.describe(gather, true)))
	} else if err != nil {
		diags.Append(c.isNotYet(goal, time.Since(begin), err, w.describe(gather, false)))
	}
	return diags
}

// hasFailed reports that a run failed while an apply waited for it. It is an error only with fail_on_error.
func (c *jobCluster) hasFailed(failOnError bool, why string) diag.Diagnostic {
	summary, why := fmt.Sprintf("%s %s has failed", c.noun, c.subject.importID), wording.Printable(why)
	if failOnError {
		return diag.NewErrorDiagnostic(summary, why)
	}
	return diag.NewWarningDiagnostic(summary, fmt.Sprintf("%s\n\nThe %s is not changed. To get an error instead of this warning, set fail_on_error = true.", why, c.word))
}

// isNotYet reports that a wait has ended before its goal: err is the reason, and where the progress of the job.
func (c *jobCluster) isNotYet(goal string, waited time.Duration, err error, where string) diag.Diagnostic {
	verb := "is not"
	if goal == waitForSucceeded {
		verb = "has not"
	}
	return diag.NewWarningDiagnostic(fmt.Sprintf("%s %s %s %s yet", c.noun, c.subject.importID, verb, goal),
		fmt.Sprintf("Waited %s; %s. The %s continues; the next plan shows its status.\n\n%s", waited.Round(time.Second), whyEnded(err), c.word, wording.Printable(where)))
}

// howToResume is the remedy for a suspended job.
func howToResume(ref trainingjob.JobRef) string {
	return fmt.Sprintf("A user or another client has suspended it. Resume it with the action elastic_job_resume (Terraform 1.14 or later), "+
		"or, outside of a queue, with kubectl patch job -n %s %s --type=merge -p '{\"spec\":{\"suspend\":false}}'.", ref.Namespace, ref.Name)
}

// whyEnded is the reason why a wait has ended early, as the end of a sentence.
func whyEnded(err error) string {
	var missing *missingQueueError
	switch {
	case errors.As(err, &missing):
		return fmt.Sprintf("%s, and was not created within %s; no workload is admitted until it exists", missing.problem, queueGrace)
	case errors.Is(err, context.Canceled):
		return "it was interrupted"
	case errors.Is(err, errTimeIsUp), errors.Is(err, context.DeadlineExceeded):
		return "the time limit was reached"
	}
	_, detail := cluster.Explain(err)
	return strings.TrimSuffix(detail, ".")
}

// events are the namespace's events about objects with one of the UIDs; none if the account may not read them.
func (c *jobCluster) events(ctx context.Context, ref trainingjob.JobRef, objects map[types.UID]bool) []corev1.Event {
	list, err := c.client.Kubernetes().CoreV1().Events(ref.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		tflog.Warn(ctx, "events cannot be listed", map[string]any{"namespace": ref.Namespace, "error": err.Error()})
		return nil
	}
	return trainingjob.EventsAbout(list.Items, objects)
}

// uidsOf are the pods' UIDs.
func uidsOf(pods []corev1.Pod) map[types.UID]bool {
	objects := map[types.UID]bool{}
	for i := range pods {
		objects[pods[i].UID] = true
	}
	return objects
}

// shown are the pods as they may be shown: a container's last words are of its log.
func (c *jobCluster) shown(pods []corev1.Pod) []corev1.Pod {
	if c.client.HidesPodLogs() {
		return trainingjob.WithoutTerminationMessages(pods)
	}
	return pods
}

// lastLines are the last lines of a container's log, or the reason why it cannot be read. There are none if logs are
// not to be shown.
func (c *jobCluster) lastLines(ctx context.Context, pod *corev1.Pod, container string) []string {
	if c.client.HidesPodLogs() {
		return []string{"(not shown: show_pod_logs = false)"}
	}
	text, err := c.client.Kubernetes().CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
		Container: container, TailLines: new(int64(lastLogLines)),
	}).DoRaw(ctx)
	if err != nil {
		return []string{fmt.Sprintf("(the log of pod %s cannot be read: %v)", pod.Name, err)}
	}
	return logLines(string(text))
}

// logLines are the lines of a log, for a section that is never empty.
func logLines(text string) []string {
	text = strings.TrimSpace(text)
	if text == "" {
		return []string{"(the container wrote nothing)"}
	}
	return strings.Split(text, "\n")
}

func section(b *strings.Builder, title string, lines []string) {
	if len(lines) > 0 {
		b.WriteString("\n" + title + "\n  " + strings.Join(lines, "\n  ") + "\n")
	}
}
