package forecast

import (
	"fmt"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// defaultBackoffLimit is the backoffLimit of Jobs that set none (pkg/apis/batch/v1/defaults.go).
const defaultBackoffLimit = 6

// jobLoss is the reaction of a Job to the eviction of its pods (pkg/controller/job).
type jobLoss struct {
	// fails is the reason why the Job fails for good: its controller deletes the other pods and creates none. "" if the
	// Job continues.
	fails string
	// number is the planned job for which the Job loses the first of its pods.
	number int
}

// batchJobOf is the Job that a pod belongs to; nil if there is none, or if it was not read.
func (f *forecast) batchJobOf(pod *corev1.Pod) *batchv1.Job {
	controller := metav1.GetControllerOfNoCopy(pod)
	if controller == nil || controller.Kind != aJob {
		return nil
	}
	if f.batchJobs == nil {
		f.batchJobs = make(map[types.UID]*batchv1.Job, len(f.snapshot.BatchJobs))
		for _, job := range f.snapshot.BatchJobs {
			f.batchJobs[job.UID] = job
		}
	}
	return f.batchJobs[controller.UID]
}

// jobLosses are the Jobs that lose pods to preemption in a run.
func (f *forecast) jobLosses(r *run) map[types.UID]jobLoss {
	lost, first := map[types.UID][]*corev1.Pod{}, map[types.UID]int{}
	for _, v := range r.lost {
		if job := f.batchJobOf(v.pod.Object()); job != nil && v.evicted() && !r.succeeds[job.UID] {
			if len(lost[job.UID]) == 0 {
				first[job.UID] = v.job
			}
			lost[job.UID] = append(lost[job.UID], v.pod.Object())
		}
	}
	losses := map[types.UID]jobLoss{}
	for uid, pods := range lost {
		job := f.batchJobs[uid]
		losses[uid] = jobLoss{fails: failureOf(job, pods), number: first[uid]}
	}
	return losses
}

// failureOf is the reason why a Job fails when preemption removes its pods; "" if it continues without them, or creates
// new ones.
func failureOf(job *batchv1.Job, pods []*corev1.Pod) string {
	counted := 0
	for _, pod := range pods {
		switch action := onDisruption(job); action {
		case batchv1.PodFailurePolicyActionIgnore:
		case batchv1.PodFailurePolicyActionFailJob:
			return "its podFailurePolicy says FailJob when a pod is disrupted"
		case batchv1.PodFailurePolicyActionFailIndex:
			return indexFailure(job, "its podFailurePolicy says FailIndex when a pod is disrupted")
		default:
			if limit := job.Spec.BackoffLimitPerIndex; limit != nil && indexFailures(pod)+1 > int(*limit) {
				if why := indexFailure(job, fmt.Sprintf("its backoffLimitPerIndex of %d is exceeded", *limit)); why != "" {
					return why
				}
				continue
			}
			counted++
		}
	}
	limit := int32(defaultBackoffLimit)
	if job.Spec.BackoffLimit != nil {
		limit = *job.Spec.BackoffLimit
	}
	if counted > 0 && int(job.Status.Failed)+counted > int(limit) {
		return fmt.Sprintf("its backoffLimit of %d is exceeded", limit)
	}
	return ""
}

// indexFailure is the reason why a Job fails when one of its indexes does; maxFailedIndexes may allow for some.
func indexFailure(job *batchv1.Job, why string) string {
	if job.Spec.MaxFailedIndexes == nil || *job.Spec.MaxFailedIndexes > 0 {
		return ""
	}
	return why + ", and its maxFailedIndexes is 0"
}

// onDisruption is the action of the Job's pod failure policy for a pod with the condition DisruptionTarget. It ignores
// rules for exit codes: a pod that is stopped may end with any; noteExitCodes notes where they matter.
func onDisruption(job *batchv1.Job) batchv1.PodFailurePolicyAction {
	if job.Spec.PodFailurePolicy == nil {
		return batchv1.PodFailurePolicyActionCount
	}
	for _, rule := range job.Spec.PodFailurePolicy.Rules {
		if slices.ContainsFunc(rule.OnPodConditions, ofDisruption) {
			return rule.Action
		}
	}
	return batchv1.PodFailurePolicyActionCount
}

// dependsOnExitCode reports whether a rule for exit codes may apply to an evicted pod, and have another effect than the
// rules for its conditions. The first rule that matches counts.
func dependsOnExitCode(job *batchv1.Job) bool {
	if job.Spec.PodFailurePolicy == nil {
		return false
	}
	for _, rule := range job.Spec.PodFailurePolicy.Rules {
		switch {
		case rule.OnExitCodes != nil:
			if rule.Action != onDisruption(job) {
				return true
			}
		case slices.ContainsFunc(rule.OnPodConditions, ofDisruption):
			return false
		}
	}
	return false
}

func ofDisruption(p batchv1.PodFailurePolicyOnPodConditionsPattern) bool {
	return p.Type == corev1.DisruptionTarget && (p.Status == "" || p.Status == corev1.ConditionTrue)
}

// noteExitCodes notes the Jobs whose reaction to an eviction depends on the exit code of the evicted pod.
func (f *forecast) noteExitCodes(runs []*run) {
	for _, r := range runs {
		for _, v := range r.lost {
			if job := f.batchJobOf(v.pod.Object()); job != nil && v.evicted() && dependsOnExitCode(job) {
				name := aJob + " " + shortName(job.Namespace, job.Name)
				f.notes.add(NotModelled, name, "%s has a podFailurePolicy with rules for exit codes, and with which code %s ends is not known", name, f.podName(v.pod))
			}
		}
	}
}

func indexFailures(pod *corev1.Pod) int {
	n, _ := strconv.Atoi(pod.Annotations[batchv1.JobIndexFailureCountAnnotation])
	return n
}

// recreates reports whether the controller of an evicted pod creates a new one immediately.
func (f *forecast) recreates(pod *corev1.Pod, losses map[types.UID]jobLoss) bool {
	if !ownerOf(pod).replaces(pod) || f.barred(pod) {
		return false
	}
	job := f.batchJobOf(pod)
	if job == nil {
		return true
	}
	suspended := job.Spec.Suspend != nil && *job.Spec.Suspend
	indexFailed := job.Spec.BackoffLimitPerIndex != nil && onDisruption(job) != batchv1.PodFailurePolicyActionIgnore &&
		indexFailures(pod)+1 > int(*job.Spec.BackoffLimitPerIndex)
	return losses[job.UID].fails == "" && !suspended && !indexFailed && job.DeletionTimestamp == nil
}

// backsOff reports whether the controller of a pod counts its loss as a failure, and waits for ten seconds or more
// before it creates a new one.
func (f *forecast) backsOff(pod *corev1.Pod) bool {
	job := f.batchJobOf(pod)
	return job != nil && onDisruption(job) == batchv1.PodFailurePolicyActionCount
}

// stopFailed stops the remaining pods of Jobs that fail because they lost some, and reports whether there were any.
func (f *forecast) stopFailed(r *run) bool {
	stopped := false
	for uid, loss := range f.jobLosses(r) {
		if loss.fails == "" {
			continue
		}
		for _, pod := range f.pods {
			at, runs := f.at[pod.UID]
			controller := metav1.GetControllerOfNoCopy(pod)
			gone := func(v victim) bool { return v.pod == at.pod }
			if !runs || controller == nil || controller.UID != uid || slices.ContainsFunc(r.lost, gone) {
				continue
			}
			r.cluster.Evict(at.pod, at.node)
			r.lost = append(r.lost, victim{pod: at.pod, node: at.node, job: loss.number, failed: true})
			stopped = true
		}
	}
	return stopped
}
