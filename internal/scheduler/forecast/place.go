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
		one.queues = append(one.queues, one.unsettled()...)
	}
	runs, seen := r.each(starts), map[string]bool{}
	for round := 0; ; round++ {
		var next, cleared, early, ended []*run
		for _, one := range runs {
			ended = append(ended, r.ends(one)...)
		}
		runs = r.inTime(ended)
		for _, one := range runs {
			early = append(early, r.early(one)...)
		}
		if len(early) > 0 {
			runs = r.merge(append(runs, early...))
		}
		for _, one := range runs {
			if round == maxRounds && len(one.stoppingNodes()) > 0 {
				one.cut = true
				one.clear()
			}
			if ways := one.clearings(pods); len(ways) > 0 {
				cleared = append(cleared, ways...)
			} else {
				next = append(next, one)
			}
		}
		if len(cleared) == 0 {
			break
		}
		cleared = r.onward(cleared, seen, len(next))
		for _, one := range cleared {
			one.views = []placement.Budgets{one.cluster.Budgets()}
			one.queues = append(one.retries(one.waiting(pods)), one.opportunists(pods)...)
		}
		runs = r.merge(append(next, r.each(cleared)...))
	}
	return runs
}

// retries are the pods to try again. Their back-off times are not known, and so neither is whether pods with a
// nominated node come before others. That makes a difference only if one of the others finds a node.
func (r *run) retries(waiting []*placement.Pod) [][]*placement.Pod {
	waiting = byPriority(waiting)
	var nominated, others []*placement.Pod
	for _, pod := range waiting {
		if r.cluster.Nominated(pod) != "" {
			nominated = append(nominated, pod)
		} else {
			others = append(others, pod)
		}
	}
	dryRun := r.cluster.Clone()
	finds := func(pod *placement.Pod) bool { return found(dryRun.Schedule(pod)) }
	if len(nominated) == 0 || !slices.ContainsFunc(others, finds) {
		return [][]*placement.Pod{waiting}
	}
	return [][]*placement.Pod{nominated, others}
}

// opportunists are pods of the cluster, those of one kind in a list, that find room now though they are less important
// than a planned pod that waits, or that evict others. Their order is not known, as room may be reserved on other nodes
// than theirs.
func (r *run) opportunists(pods []*placement.Pod) [][]*placement.Pod {
	exposed := slices.ContainsFunc(r.waiting(pods), func(pod *placement.Pod) bool { return r.outcomes[pod] != nil })
	dryRun := r.cluster.Clone()
	return r.pending(r.lesser, func(pod *placement.Pod) bool {
		d := dryRun.Schedule(pod)
		return exposed && d.Kind == placement.Bound || d.Kind == placement.Preempts
	})
}

// unsettled are pending pods of the cluster, those of one kind in a list, that the scheduler has not tried since
// something changed: they find a node, or lose the one that is reserved for them, before any planned pod is tried, or after it.
func (r *run) unsettled() [][]*placement.Pod {
	dryRun := r.cluster.Clone()
	return r.pending(slices.Concat(r.competitors, r.lesser), func(pod *placement.Pod) bool {
		reserved := dryRun.Nominated(pod)
		return found(dryRun.Schedule(pod)) || dryRun.Nominated(pod) != reserved
	})
}

// findNow are those of the pods that find a node or victims in the cluster as it is.
func (r *run) findNow(pods []*placement.Pod) map[*placement.Pod]bool {
	dryRun := r.cluster.Clone()
	all := map[*placement.Pod]bool{}
	for _, kind := range r.pending(pods, func(pod *placement.Pod) bool { return found(dryRun.Schedule(pod)) }) {
		for _, pod := range kind {
			all[pod] = true
		}
	}
	return all
}

// pending groups pods of the cluster by their kind, and returns the kinds of which one pod meets a condition.
func (r *run) pending(pods []*placement.Pod, meets func(*placement.Pod) bool) (lists [][]*placement.Pod) {
	at := map[string]int{} // a negative index: the kind does not meet the condition
	for _, pod := range pods {
		kind := r.kind(pod)
		index, known := at[kind]
		switch {
		case known && index >= 0:
			lists[index] = append(lists[index], pod)
		case known:
		case meets(pod):
			at[kind] = len(lists)
			lists = append(lists, []*placement.Pod{pod})
		default:
			at[kind] = -1
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
	var done []*run // with empty queues
	seen := map[string]bool{}
	for len(runs) > 0 {
		var next []*run
		for _, r := range s.inTime(runs) {
			ways := r.nexts()
			if len(ways) == 0 {
				done = append(done, r)
				continue
			}
			for _, way := range ways {
				next = append(next, way.schedule(way.pod)...)
			}
		}
		runs = s.onward(s.merge(next), seen, len(done))
	}
	return s.merge(done)
}

// way is a run together with the pod to try next.
type way struct {
	*run
	pod *placement.Pod
}

// nexts are the possible continuations of a run: with the first pod of each of its queues.
func (r *run) nexts() []way {
	if len(r.later) > 0 {
		r.begin(r)
	}
	r.queues = slices.DeleteFunc(r.queues, func(queue []*placement.Pod) bool { return len(queue) == 0 })
	if len(r.queues) == 0 {
		return nil
	}
	follow := min(r.room(), len(r.queues))
	r.cut = r.cut || follow < len(r.queues)
	ways := []way{{run: r}}
	for range follow - 1 {
		ways = append(ways, way{run: r.fork()})
	}
	for i := range ways {
		queue := ways[i].queues[i]
		ways[i].pod, ways[i].queues[i], ways[i].from = queue[0], queue[1:], i
	}
	return ways
}

// schedule tries one pod, in one run for each equal choice.
func (r *run) schedule(pod *placement.Pod) []*run {
	r.tries++
	f := r.outcomes[pod]
	if why := unscheduled(pod.Object()); f != nil && why != "" {
		f.state, f.why = Waits, why
		return []*run{r}
	}
	if node := pod.Object().Spec.NodeName; f != nil && node != "" {
		return r.bind(pod, f, node)
	}
	reserved := r.cluster.Nominated(pod)
	d := r.cluster.Schedule(pod)
	var choices []choice
	if found(d) {
		choices = r.choices(r.cluster, pod, d, len(r.views)-1)
	}
	others := r.sooner(pod, choices)
	early, mayWait := r.unnoticed(pod, choices)
	wait := func(r *run) *run {
		if its := r.outcomes[pod]; its != nil {
			its.state, its.why = Waits, ""
		}
		return r
	}
	switch {
	case len(choices)+len(early) == 0:
		if r.cluster.Nominated(pod) != reserved { // others may use the room
			r.requeue()
		}
		return append(others, wait(r))
	case found(d) && !mayWait:
	case r.room() < 2:
		r.cut = true
	default:
		others = append(others, wait(r.fork()))
	}
	if d.Kind == placement.Preempts {
		choices = r.laggingChoices(pod, choices)
	}
	return append(r.follow(pod, union(choices, early)), others...)
}

// follow applies equal choices, in one run each.
func (r *run) follow(pod *placement.Pod, choices []choice) []*run {
	distinct := r.distinct(r, choices)
	follow := min(r.room(), len(distinct))
	r.cut = r.cut || follow < len(distinct)
	if f := r.outcomes[pod]; f != nil {
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
	f := r.outcomes[pod]
	if f == nil { // a pending pod of the cluster
		f = &podOutcome{job: r.jobOf(pod), role: r.roleOf(pod)}
	}
	f.nodes, f.others = namesOf(c, equal)
	if reserved := r.cluster.Nominated(pod); reserved != "" && reserved != c.node { // others may use the room there
		defer r.requeue()
	}
	if len(c.victims) == 0 {
		f.after = append(f.after, r.stoppedOn(c.node, pod, f)...)
		r.cluster.AddPod(pod, c.node)
		if slices.Contains(r.competitors, pod) {
			r.competitors = slices.DeleteFunc(r.competitors, func(p *placement.Pod) bool { return p == pod })
			r.scheduled = append(r.scheduled, located{pod, c.node})
		}
		if slices.Contains(r.lesser, pod) {
			r.lesser = slices.DeleteFunc(r.lesser, func(p *placement.Pod) bool { return p == pod })
			r.scheduled = append(r.scheduled, located{pod, c.node})
		}
		f.state, f.bound = Starts, c.node
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
		r.lose(victim{pod: v, node: c.node, job: f.job, by: f.role, chosen: spared(v, equal)})
		if theirs := r.outcomes[v]; theirs != nil { // planned too, and less important
			theirs.state, theirs.bound, theirs.gone, theirs.why = Waits, "", theirs.alone, "it makes room for others"
		}
	}
}

// jobOf is the job for which a pod evicts others. A pending pod of the cluster does so for the planned one if it could not
// without it.
func (r *run) jobOf(pod *placement.Pod) int {
	switch f := r.outcomes[pod]; {
	case f != nil:
		return f.job
	case r.independent[pod]:
		return noJob
	default:
		return r.job
	}
}

// roleOf is the role of a pod in its job.
func (r *run) roleOf(pod *placement.Pod) string {
	if f := r.outcomes[pod]; f != nil {
		return f.role
	}
	return "pending pod " + pod.String()
}
