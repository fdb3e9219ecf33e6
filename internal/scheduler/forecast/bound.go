package forecast

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/placement"
)

// bind places a pod on the node that its specification names, without scheduling or preemption. If the node's kubelet
// rejects the pod, it has failed. The scheduler may still count it on its node for a moment.
func (r *run) bind(pod *placement.Pod, f *podOutcome, node string) []*run {
	if f.bound != "" || f.state == NotAdmitted {
		return []*run{r}
	}
	if !r.cluster.Knows(node) {
		f.state, f.why = Waits, "its node "+node+" is not there"
		return []*run{r}
	}
	rejection := r.cluster.Admits(pod, node)
	if rejection == nil {
		r.cluster.AddPod(pod, node)
		f.state, f.bound, f.nodes = Starts, node, []string{node}
		return []*run{r}
	}
	f.state, f.why = NotAdmitted, fmt.Sprintf("the kubelet of %s: %s (%s)", node, rejection.Reason, rejection.Detail)
	scheduled := func(other *placement.Pod) bool { return other.Object().Spec.NodeName == "" }
	if !slices.ContainsFunc(r.queues, func(queue []*placement.Pod) bool { return slices.ContainsFunc(queue, scheduled) }) {
		return []*run{r}
	}
	still := r.fork()
	still.cluster.AddPod(pod, node)
	still.lost = append(still.lost, victim{pod: pod, node: node, job: noJob})
	return []*run{r, still}
}

// systemCritical is the least priority for which a kubelet evicts others.
const systemCritical = 2_000_000_000

// noteBound notes what the forecast does not know about a pod that names its node.
func (f *forecast) noteBound(runs []*run, pod *placement.Pod) {
	node := pod.Object().Spec.NodeName
	if node == "" || !f.cluster.Knows(node) {
		return
	}
	note := func(why string) {
		f.notes.add(BoundDirectly, "Node "+node, "%s names node %s, whose kubelet decides: %s", f.podName(pod), node, why)
	}
	if f.cluster.WantsClaims(pod) {
		note("nobody binds its claims")
	}
	rejected := slices.ContainsFunc(runs, func(r *run) bool { return r.outcomes[pod].state == NotAdmitted })
	switch job := f.jobs[f.planned[pod].job]; {
	case !rejected:
	case pod.Priority >= systemCritical:
		note("it may evict others for so critical a pod")
	case job.ofPods():
	case job.Noun != aJob:
		note("it rejects the pod as long as there is no room, and its controller recreates it repeatedly")
	case f.failures(runs) > retriesOf(job) && f.starts(runs):
		note("its Job may fail, with its other pods, after so many rejections")
	}
}

// failures is the largest number of pods of the job that kubelets reject.
func (f *forecast) failures(runs []*run) (most int) {
	for _, r := range runs {
		count := 0
		for pod, outcome := range r.outcomes {
			if p, planned := f.planned[pod]; planned && p.job == f.number && outcome.state == NotAdmitted {
				count++
			}
		}
		most = max(most, count)
	}
	return most
}

// starts reports whether a pod of the job starts in any run.
func (f *forecast) starts(runs []*run) bool {
	for _, r := range runs {
		for pod, outcome := range r.outcomes {
			if p, planned := f.planned[pod]; planned && p.job == f.number && outcome.state == Starts {
				return true
			}
		}
	}
	return false
}

// retriesOf is the number of pods that a Job may lose without failing; negative if its pod failure policy decides.
func retriesOf(job Job) int {
	const standard = 6
	switch object := job.Object.(type) {
	case *batchv1.Job:
		switch {
		case object.Spec.PodFailurePolicy != nil || object.Spec.BackoffLimitPerIndex != nil:
			return -1
		case object.Spec.BackoffLimit != nil:
			return int(*object.Spec.BackoffLimit)
		}
	case *unstructured.Unstructured:
		spec, _, _ := unstructured.NestedMap(object.Object, "spec")
		if spec["podFailurePolicy"] != nil || spec["backoffLimitPerIndex"] != nil {
			return -1
		}
		if limit, found, err := unstructured.NestedInt64(spec, "backoffLimit"); found && err == nil {
			return int(limit)
		}
	}
	return standard
}
