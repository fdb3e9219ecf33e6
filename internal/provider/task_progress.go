package provider

import (
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	controllerconstants "sigs.k8s.io/kueue/pkg/controller/constants"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/task"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

// What a task's phase may be.
const (
	taskQueued    = "Queued"    // Kueue has suspended it: it waits for quota, or is being stopped after a preemption
	taskSuspended = "Suspended" // a user has suspended it: no controller starts it by itself
	taskStarting  = "Starting"
	taskRunning   = "Running"
	taskSucceeded = "Succeeded"
	taskFailed    = "Failed"
)

func taskFinished(phase string) bool { return phase == taskSucceeded || phase == taskFailed }

// taskProgress is the progress of a task by its Job and, if there is one, its Workload.
type taskProgress struct {
	phase    string
	reason   string // in a sentence; "" if there is none
	restarts int64
	// Of the Workload.
	workload    string
	preemptions int64
}

// progressOf reads a Job; workload is nil where there is none, or where it cannot be read.
func progressOf(job *batchv1.Job, workload *kueue.Workload) taskProgress {
	p := taskProgress{phase: taskStarting, restarts: int64(job.Status.Failed)}
	if workload != nil {
		p.workload, p.preemptions = workload.Name, evictionsOf(workload)[kueue.WorkloadEvictedByPreemption]
	}
	nodes := int32(1)
	if job.Spec.Parallelism != nil {
		nodes = *job.Spec.Parallelism
	}
	ready := int32(0)
	if job.Status.Ready != nil {
		ready = *job.Status.Ready
	}
	failed := trainingjob.JobCondition(job, batchv1.JobFailed)
	if failed == nil { // the reason is known before the last pod has stopped
		failed = trainingjob.JobCondition(job, batchv1.JobFailureTarget)
	}
	switch {
	case failed != nil:
		p.phase, p.reason = taskFailed, sentenceOf(failed.Reason, failed.Message)
		p.restarts = max(0, p.restarts-1) // the last failure was followed by no other run
	case trainingjob.JobCondition(job, batchv1.JobComplete) != nil || trainingjob.JobCondition(job, batchv1.JobSuccessCriteriaMet) != nil:
		p.phase = taskSucceeded
	case trainingjob.IsSuspended(job):
		p.phase, p.reason = whySuspended(job, workload)
	case ready > 0 && ready+job.Status.Succeeded >= nodes:
		p.phase = taskRunning
	}
	return p
}

// whySuspended is the phase of a suspended Job, and why it is suspended.
func whySuspended(job *batchv1.Job, workload *kueue.Workload) (phase, reason string) {
	switch {
	case workload != nil:
		s := workloadStatusOf(workload)
		if isInactive(workload) {
			return taskSuspended, sentenceOf(s.reason, s.message)
		}
		return taskQueued, sentenceOf(s.reason, s.message)
	case job.Labels[controllerconstants.QueueLabel] != "":
		return taskQueued, "Kueue has made no Workload of it."
	default:
		return taskSuspended, "The Job is suspended, and in no queue: nothing starts it until it is resumed."
	}
}

// sentenceOf joins a reason and its message.
func sentenceOf(reason, message string) string {
	message = strings.TrimSuffix(strings.TrimSpace(message), ".")
	switch {
	case message == "" && reason == "":
		return ""
	case message == "":
		return reason + "."
	case reason == "":
		return message + "."
	default:
		return reason + ": " + message + "."
	}
}

// logsCommand shows what a task prints: of the pod that runs, or of all where there are several.
func logsCommand(namespace, name string, nodes int) string {
	if nodes > 1 {
		return fmt.Sprintf("kubectl logs -n %s -l %s=%s -c %s --tail=-1 --prefix", namespace, task.LabelTask, name, task.ContainerName)
	}
	return fmt.Sprintf("kubectl logs -n %s job/%s -c %s", namespace, name, task.ContainerName)
}
