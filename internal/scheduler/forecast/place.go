package forecast

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/placement"
)

// place submits pods to the scheduler at one time, those of each list in their order and the lists in any order, and
// continues until nothing changes: stopping pods are gone, and waiting pods have been tried again. It returns the runs
// into which this one splits.
func (r *run) place(lists ...[]*placement.Pod) []*run {
	pods := slices.Concat(lists...)
	r.view()
	starts := r.afterQueues(pods)
	for _, one := range starts {
		one.queues = nil
		for _, list := range lists {
			one.queues = append(one.queues, byPriority(list))
		}
		one.queues = append(one.queues, one.opportunists(pods)...)
	}
	runs := r.each(starts)
	for range maxRounds {
		var next, cleared []*run
		for _, one := range runs {
			if ways := one.clearings(pods, r.share(len(runs))); len(ways) > 0 {
				cleared = append(cleared, ways...)
			} else {
				next = append(next, one)
			}
		}
		if len(cleared) == 0 {
			break
		}
		for _, one := range cleared {
			one.views = []placement.Budgets{one.cluster.Budgets()}
			one.queues = append(one.retries(pods), one.opportunists(pods)...)
		}
		runs = r.merge(append(next, r.each(cleared)...))
	}
	return runs
}

// retries are the pods to try again. Their back-off times are not known, and so neither is whether pods with a
// nominated node come before others. That makes a difference only if one of the others finds a node.
func (r *run) retries(pods []*placement.Pod) [][]*placement.Pod {
	waiting := byPriority(r.waiting(pods))
	var kept, others []*placement.Pod
	for _, pod := range waiting {
		if r.cluster.Nominated(pod) != "" {
			kept = append(kept, pod)
		} else {
			others = append(others, pod)
		}
	}
	asked := r.cluster.Clone()
	finds := func(pod *placement.Pod) bool {
		d := asked.Schedule(pod)
		return r.fates[pod] != nil && (d.Kind == placement.Bound || d.Kind == placement.Preempts)
	}
	if len(kept) == 0 || !slices.ContainsFunc(others, finds) {
		return [][]*placement.Pod{waiting}
	}
	return [][]*placement.Pod{kept, others}
}

// opportunists are pods of the cluster, each in a list of its own, that find room now though they are less important
// than a planned pod that waits. Their order is not known, as room may be reserved on other nodes than theirs.
func (r *run) opportunists(pods []*placement.Pod) (lists [][]*placement.Pod) {
	exposed := slices.ContainsFunc(pods, func(pod *placement.Pod) bool {
		f := r.fates[pod]
		return f != nil && f.state == Waits && f.bound == ""
	})
	if !exposed {
		return nil
	}
	for _, pod := range r.lesser {
		if len(r.cluster.Fits(pod)) > 0 {
			lists = append(lists, []*placement.Pod{pod})
		}
	}
	return lists
}

// byPriority sorts pods in the order of the scheduling queue.
func byPriority(pods []*placement.Pod) []*placement.Pod {
	pods = slices.Clone(pods)
	slices.SortStableFunc(pods, func(a, b *placement.Pod) int { return cmp.Compare(b.Priority, a.Priority) })
	return pods
}

// each tries the pods in the queues of runs, until the queues are empty.
func (s splitter) each(runs []*run) []*run {
	for {
		var next []*run
		more := false
		for _, r := range runs {
			ways := r.nexts(s.share(len(runs)))
			if len(ways) == 0 {
				next = append(next, r)
				continue
			}
			more = true
			share := max(s.share(len(runs))/len(ways), 1)
			for _, way := range ways {
				next = append(next, way.schedule(way.pod, share)...)
			}
		}
		if runs = s.merge(next); !more {
			return runs
		}
	}
}

// way is a run together with the pod to try next.
type way struct {
	*run
	pod *placement.Pod
}

// nexts are the possible continuations of a run: with the first pod of each of its queues, at most the given number.
func (r *run) nexts(most int) []way {
	r.queues = slices.DeleteFunc(r.queues, func(queue []*placement.Pod) bool { return len(queue) == 0 })
	if len(r.queues) == 0 {
		return nil
	}
	r.cut = r.cut || most < len(r.queues)
	ways := []way{{run: r}}
	for range min(most, len(r.queues)) - 1 {
		ways = append(ways, way{run: r.fork()})
	}
	for i := range ways {
		queue := ways[i].queues[i]
		ways[i].pod, ways[i].queues[i] = queue[0], queue[1:]
	}
	return ways
}

// schedule tries one pod, in one run for each equal choice, up to a maximum number of runs.
func (r *run) schedule(pod *placement.Pod, most int) []*run {
	f := r.fates[pod]
	if why := unscheduled(pod.Object()); f != nil && why != "" {
		f.state, f.why = Waits, why
		return []*run{r}
	}
	if node := pod.Object().Spec.NodeName; f != nil && node != "" {
		return r.bind(pod, f, node)
	}
	d := r.cluster.Schedule(pod)
	early, mayWait := r.unnoticed(pod, d)
	if d.Kind != placement.Bound && d.Kind != placement.Preempts && len(early) == 0 {
		if f != nil {
			f.state, f.why = Waits, ""
		}
		return []*run{r}
	}
	if mayWait {
		waits := r.fork()
		waits.fates[pod].state, waits.fates[pod].why = Waits, ""
		return append(r.follow(pod, d, early, most), waits)
	}
	return r.follow(pod, d, early, most)
}

// follow applies a decision and its alternatives, in one run each, up to a maximum number of runs.
func (r *run) follow(pod *placement.Pod, d placement.Decision, early []choice, most int) []*run {
	f := r.fates[pod]
	var choices []choice
	if d.Kind == placement.Bound || d.Kind == placement.Preempts {
		choices = []choice{{node: d.Node, victims: d.Victims, view: len(r.views) - 1}}
	}
	follow, distinct := 1, choices
	if f != nil { // where competitors go matters less
		if len(choices) > 0 {
			choices = r.choices(r.cluster, pod, d, len(r.views)-1)
		}
		if d.Kind == placement.Preempts {
			choices = r.laggingChoices(pod, choices)
		}
		for _, c := range early {
			if !slices.ContainsFunc(choices, c.equal) {
				choices = append(choices, c)
			}
		}
		distinct = r.distinct(r, choices)
		follow = min(most, len(distinct))
		r.cut = r.cut || follow < len(distinct)
		for _, left := range choices {
			r.possible(left, f)
		}
	}
	runs := []*run{r}
	for range follow - 1 {
		runs = append(runs, r.fork())
	}
	for i, split := range runs {
		split.take(pod, distinct[i], choices)
	}
	return runs
}

// unscheduled is the reason why kube-scheduler does not try a pod; "" if it does.
func unscheduled(pod *corev1.Pod) string {
	if name := pod.Spec.SchedulerName; name != "" && name != corev1.DefaultSchedulerName {
		return "the scheduler " + name + " places it, which is not known here"
	}
	if len(pod.Spec.SchedulingGates) == 0 {
		return ""
	}
	var gates []string
	for _, gate := range pod.Spec.SchedulingGates {
		gates = append(gates, gate.Name)
	}
	return "its scheduling gates have to be removed first: " + join(gates)
}

// take applies a decision: it binds the pod, or its victims begin to stop and the pod is nominated for the node.
func (r *run) take(pod *placement.Pod, c choice, equal []choice) {
	f := r.fates[pod]
	if f == nil { // a pending pod of the cluster, which belongs to no planned job
		f = &fate{job: noJob}
	}
	f.nodes, f.others = namesOf(c, equal)
	if len(c.victims) == 0 {
		r.cluster.AddPod(pod, c.node)
		if slices.Contains(r.competitors, pod) {
			r.competitors = slices.DeleteFunc(r.competitors, func(p *placement.Pod) bool { return p == pod })
			r.seated = append(r.seated, located{pod, c.node})
		}
		if slices.Contains(r.lesser, pod) {
			r.lesser = slices.DeleteFunc(r.lesser, func(p *placement.Pod) bool { return p == pod })
			r.seated = append(r.seated, located{pod, c.node})
		}
		f.state, f.bound = Starts, c.node
		f.after = append(f.after, r.stoppedOn(c.node, f)...)
		return
	}
	f.state = Waits
	r.cluster.Preempt(pod, c.node, c.victims)
	r.views = slices.Clone(r.views[c.view:])
	r.view()
	for _, v := range c.victims {
		if r.stops(v) { // for another pod already, or because of its deletion
			continue
		}
		r.lost = append(r.lost, victim{pod: v, node: c.node, job: f.job, by: f.role, chosen: spared(v, equal)})
		if theirs := r.fates[v]; theirs != nil { // planned too, and less important
			theirs.state, theirs.bound, theirs.why = Waits, "", "it makes room for others"
		}
	}
}
