package forecast

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/placement"
)

// spared reports whether any of several equal choices leaves a pod alone.
func spared(pod *placement.Pod, equal []choice) bool {
	return slices.ContainsFunc(equal, func(c choice) bool { return !slices.Contains(c.victims, pod) })
}

// stops reports whether a pod is stopping, or has stopped.
func (r *run) stops(pod *placement.Pod) bool {
	return slices.ContainsFunc(r.lost, func(v victim) bool { return v.pod == pod && !v.stopped })
}

// stoppedOn are the pods that had to stop on a node before this pod could start there: not those beside which it fits,
// of which it waits for those that stop soonest.
func (r *run) stoppedOn(node string, pod *placement.Pod, f *podOutcome) []victim {
	var found []victim
	for _, v := range r.lost {
		if v.stopped && v.node == node && (v.job == f.job || v.job == noJob) && !slices.ContainsFunc(f.after, func(a victim) bool { return a.pod == v.pod }) {
			found = append(found, v)
		}
	}
	slices.SortStableFunc(found, func(a, b victim) int { return cmp.Compare(grace(b.pod.Object()), grace(a.pod.Object())) })
	beside := r.cluster
	return slices.DeleteFunc(found, func(v victim) bool {
		if v.job == f.job && v.by == f.role {
			return false
		}
		with := beside.Clone()
		with.AddPod(v.pod, node)
		if !slices.Contains(with.Fits(pod), node) {
			return false
		}
		beside = with
		return true
	})
}

// stoppingNodes are the nodes on which pods are stopping.
func (r *run) stoppingNodes() (nodes []string) {
	for _, v := range r.lost {
		if !v.stopped && !slices.Contains(nodes, v.node) {
			nodes = append(nodes, v.node)
		}
	}
	return nodes
}

// clear removes all stopping pods.
func (r *run) clear() { r.clearNodes(func(string) bool { return true }) }

// clearNodes removes the stopping pods of some nodes.
func (r *run) clearNodes(on func(node string) bool) {
	r.clearWhere(func(v victim) bool { return on(v.node) })
}

// clearWhere removes some of the stopping pods.
func (r *run) clearWhere(is func(victim) bool) {
	for i := range r.lost {
		if v := &r.lost[i]; !v.stopped && is(*v) {
			r.cluster.RemovePod(v.pod, v.node)
			v.stopped = true
		}
	}
}

// clearings are the sets of nodes whose stopping pods may be gone when the scheduler runs again: all nodes or, if that
// makes a difference, only one of them, as pods take different times to stop. None if nothing is stopping.
func (r *run) clearings(pods []*placement.Pod) []*run {
	nodes := r.stoppingNodes()
	if len(nodes) == 0 {
		return nil
	}
	ways := []*run{r}
	if len(nodes) > 1 && r.orderMatters(pods) {
		unlike := r.unlike(nodes)
		follow := min(r.room()-1, len(unlike))
		r.cut = r.cut || follow < len(unlike)
		for _, node := range unlike[:follow] {
			way := r.fork()
			way.clearNodes(func(other string) bool { return other == node })
			ways = append(ways, way)
		}
	}
	for _, v := range r.partly(pods) {
		if r.room() < 2 {
			r.cut = true
			break
		}
		way := r.fork()
		way.clearWhere(func(other victim) bool { return other.pod == v.pod })
		ways = append(ways, way)
	}
	r.clear()
	return ways
}

// partly are the stopping pods that are not the only ones of their node, and whose end alone lets a pod that waits find
// victims, or start where no room is reserved for it: before another one that waits, or on another node.
func (r *run) partly(pods []*placement.Pod) (some []victim) {
	waiting, stopping := r.waiting(pods), map[string]int{}
	for _, v := range r.lost {
		if !v.stopped {
			stopping[v.node]++
		}
	}
	for _, v := range r.lost {
		if v.stopped || stopping[v.node] < 2 {
			continue
		}
		then := r.cluster.Clone()
		then.RemovePod(v.pod, v.node)
		if slices.ContainsFunc(waiting, func(pod *placement.Pod) bool {
			reserved := r.cluster.Nominated(pod)
			d := then.Schedule(pod)
			return d.Kind == placement.Preempts || d.Kind == placement.Bound && d.Node != reserved && (len(waiting) > 1 || d.Node != v.node)
		}) {
			some = append(some, v)
		}
	}
	return some
}

// afterQueues are the ways in which pods that queues have evicted may still be on their nodes when the pods that get
// their quota are created: Kueue releases quota when pods begin to stop.
func (r *run) afterQueues(pods []*placement.Pod) []*run {
	if !slices.ContainsFunc(r.lost, func(v victim) bool { return v.queue && !v.stopped }) {
		return []*run{r}
	}
	still := r.fork()
	return append(r.clearings(pods), still)
}

// orderMatters reports whether a pod that waits for its victims could go to another node if other pods stop before
// them, given all other nominated pods on their nodes; or whether the first of several pods that starts decides where the
// others can.
func (r *run) orderMatters(pods []*placement.Pod) bool {
	then := r.cluster.Clone()
	for _, v := range r.lost {
		if !v.stopped {
			then.RemovePod(v.pod, v.node)
		}
	}
	waiting := r.waiting(pods)
	if shareClaims(waiting) {
		return true
	}
	for _, pod := range waiting {
		nominated := then.Nominated(pod) // "" before its first try
		if slices.ContainsFunc(then.Fits(pod), func(node string) bool { return node != nominated }) {
			return true
		}
	}
	return false
}

// stop stops a pod for another reason than preemption.
func (r *run) stop(pod *placement.Pod, node string) {
	gone := func(v victim) bool { return v.pod == pod && v.stopped && r.outcomes[pod] == nil }
	if r.stops(pod) || slices.ContainsFunc(r.lost, gone) { // the scheduler has evicted it before its queue does
		return
	}
	r.cluster.Evict(pod, node)
	r.lost = append(r.lost, victim{pod: pod, node: node, job: r.job, queue: true})
}

// grace is how long a pod may take to stop.
func grace(pod *corev1.Pod) time.Duration {
	if seconds := pod.DeletionGracePeriodSeconds; seconds != nil {
		return time.Duration(*seconds) * time.Second
	}
	if seconds := pod.Spec.TerminationGracePeriodSeconds; seconds != nil {
		return time.Duration(*seconds) * time.Second
	}
	return corev1.DefaultTerminationGracePeriodSeconds * time.Second
}
