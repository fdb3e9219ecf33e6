package workload

import (
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
)

// JobFinished reports whether a Job has ended, and its last words.
func JobFinished(job *batchv1.Job) (message string, succeeded, finished bool) {
	for _, c := range job.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return c.Message, c.Type == batchv1.JobComplete, true
		}
	}
	return "", false, false
}

// PodFinished reports whether a pod has ended, and its last words.
func PodFinished(pod *corev1.Pod) (message string, succeeded, finished bool) {
	return pod.Status.Message, pod.Status.Phase == corev1.PodSucceeded, Terminated(pod)
}

// PodReady reports whether a single pod's workload is ready.
func PodReady(pod *corev1.Pod) bool { return podReady(pod) }

// JobReady reports whether all pods of a Job are ready or have succeeded.
func JobReady(job *batchv1.Job) bool {
	ready := job.Status.Succeeded + ptr.Deref(job.Status.Ready, 0)
	if uncounted := job.Status.UncountedTerminatedPods; uncounted != nil {
		ready += int32(len(uncounted.Succeeded))
	}
	return ready >= JobPods(job)
}

// JobReclaimable counts the pods that a Job will never need again: fewer completions are left than it may run at once.
func JobReclaimable(w *kueue.Workload, job *batchv1.Job) []kueue.ReclaimablePod {
	parallelism := ptr.Deref(job.Spec.Parallelism, 1)
	completions := ptr.Deref(job.Spec.Completions, parallelism)
	ended := job.Status.Succeeded
	if ptr.Deref(job.Spec.CompletionMode, batchv1.NonIndexedCompletion) == batchv1.IndexedCompletion {
		ended = endedIndexes(job.Status.CompletedIndexes, ptr.Deref(job.Status.FailedIndexes, ""), completions)
	}
	remaining := max(completions-ended, 0)
	if parallelism <= 1 || ended == 0 || remaining >= parallelism {
		return nil
	}
	return []kueue.ReclaimablePod{{Name: kueue.DefaultPodSetName, Count: min(parallelism-remaining, w.Spec.PodSets[0].Count)}}
}

// endedIndexes counts the indexes below completions in lists such as "0,3-5", each once.
func endedIndexes(completed, failed string, completions int32) int32 {
	ended := map[int]bool{}
	for text := range strings.SplitSeq(completed+","+failed, ",") {
		first, last, isRange := strings.Cut(text, "-")
		from, err := strconv.Atoi(first)
		to := from
		if err == nil && isRange {
			to, err = strconv.Atoi(last)
		}
		if err != nil {
			continue
		}
		for index := from; index <= to && index < int(completions); index++ {
			ended[index] = true
		}
	}
	return int32(len(ended))
}
