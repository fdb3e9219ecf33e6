package forecast

import (
	"maps"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// An evicted pod that handles SIGTERM may end with exit code 0, and has then succeeded. Jobs that replace only failed
// pods count it as a completion and create no pod in its place; other Jobs count a pod as failed as soon as it is being
// deleted. Which code it will be is not known, so that both are followed: per Job, as its pods run the same command.

// waitsForPhase reports whether a Job decides about a deleted pod only when that has ended
// (onlyReplaceFailedPods in pkg/controller/job).
func waitsForPhase(job *batchv1.Job) bool {
	if policy := job.Spec.PodReplacementPolicy; policy != nil {
		return *policy == batchv1.Failed
	}
	return job.Spec.PodFailurePolicy != nil
}

// maySucceed is the Job that an evicted pod may have completed by its end; nil if its exit code does not matter. The
// master of a training job does not exit with 0 when it is stopped.
func (f *forecast) maySucceed(v victim) *batchv1.Job {
	job := f.batchJobOf(v.pod.Object())
	if job == nil || !v.evicted() || !waitsForPhase(job) || ownerOf(v.pod.Object()).kind == aTrainingJob {
		return nil
	}
	return job
}

// ends splits a run by whether the evicted pods of each Job fail or succeed.
func (f *forecast) ends(r *run) []*run {
	for _, v := range r.lost {
		job := f.maySucceed(v)
		if job == nil {
			continue
		}
		if _, decided := r.succeeds[job.UID]; decided {
			continue
		}
		if r.room() < 2 {
			r.cut = true
			r.succeeds = with(r.succeeds, job.UID, false)
			continue
		}
		other := r.fork()
		r.succeeds, other.succeeds = with(r.succeeds, job.UID, false), with(r.succeeds, job.UID, true)
		return append(f.ends(r), f.ends(other)...)
	}
	return []*run{r}
}

// with is a copy of a map with another value.
func with(values map[types.UID]bool, key types.UID, value bool) map[types.UID]bool {
	values = maps.Clone(values)
	if values == nil {
		values = map[types.UID]bool{}
	}
	values[key] = value
	return values
}

// afterSuccess is the number of pods that a Job creates after some of its pods have succeeded: those of further
// completions. A Job without a number of completions creates no more pods.
func afterSuccess(job *batchv1.Job, succeeded int) int {
	if job.Spec.Completions == nil {
		return 0
	}
	parallelism := 1
	if job.Spec.Parallelism != nil {
		parallelism = int(*job.Spec.Parallelism)
	}
	remaining := int(*job.Spec.Completions) - int(job.Status.Succeeded) - succeeded
	return max(min(parallelism, remaining)-(int(job.Status.Active)-succeeded), 0)
}

// successors are the numbers of pods that the Jobs whose evicted pods succeed in a run create.
func (f *forecast) successors(r *run) map[types.UID]int {
	succeeded := map[types.UID]int{}
	for _, v := range r.lost {
		if job := f.batchJobOf(v.pod.Object()); job != nil && v.evicted() && r.succeeds[job.UID] {
			succeeded[job.UID]++
		}
	}
	for uid, n := range succeeded {
		succeeded[uid] = afterSuccess(f.batchJobs[uid], n)
	}
	return succeeded
}

// endsOf describes which Jobs' pods fail or succeed in a run.
func (r *run) endsOf() (texts []string) {
	for uid, succeeds := range r.succeeds {
		if succeeds {
			texts = append(texts, "succeeds "+string(uid))
		} else {
			texts = append(texts, "fails "+string(uid))
		}
	}
	slices.Sort(texts)
	return texts
}

// unlessSucceeded is the condition of what becomes of an evicted pod.
func (f *forecast) unlessSucceeded(pod *corev1.Pod) string {
	job := f.batchJobOf(pod)
	if job == nil || !waitsForPhase(job) || ownerOf(pod).kind == aTrainingJob {
		return ""
	}
	return ", unless it exits with code 0"
}

// noteSuccesses notes the planned jobs whose pods others evict, and that may be complete then. Their pods are followed
// as if they failed, and were created again.
func (f *forecast) noteSuccesses(runs []*run) {
	for _, r := range runs {
		for _, v := range r.lost {
			if p, planned := f.planned[v.pod]; planned && v.evicted() && replacesOnlyFailed(f.jobs[p.job]) {
				f.notes.add(NotModelled, f.jobs[p.job].String(), "whether %s exits with code 0 when it is stopped, and so counts as completed, is not known", f.podName(v.pod))
			}
		}
	}
}

// replacesOnlyFailed is waitsForPhase for a planned job.
func replacesOnlyFailed(job Job) bool {
	switch object := job.Object.(type) {
	case *batchv1.Job:
		return waitsForPhase(object)
	case *unstructured.Unstructured:
		policy, found, err := unstructured.NestedString(object.Object, "spec", "podReplacementPolicy")
		if found && err == nil {
			return policy == string(batchv1.Failed)
		}
		_, found, err = unstructured.NestedMap(object.Object, "spec", "podFailurePolicy")
		return found && err == nil && object.GetKind() == aJob
	}
	return job.Noun == aTask
}
