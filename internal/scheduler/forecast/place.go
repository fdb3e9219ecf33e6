package forecast

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/placement"
)

// maxRounds bounds how often pods are tried again after others have stopped: in each round some pod is bound or
// evicted.
const maxRounds = 20

// run is one way in which pods may come to their places. Where kube-scheduler chooses at random between equals, a run
// splits: one continues with each choice.
type run struct {
	cluster *placement.Cluster
	// views are what PodDisruptionBudgets allowed since pods were given to the scheduler together, the latest last: their
	// controller follows the evictions, and the scheduler may read any of them, though none from before what it has read.
	views []placement.Budgets
	cut   bool
	splitter
	fates  map[*placement.Pod]*fate
	lost   []victim
	others []victim // who may stop as well, by choices that were not followed
	// competitors are pods of the cluster that wait for room and come before planned ones: they are tried again
	// whenever some is made.
	competitors []*placement.Pod
	seated      []located // pods of the cluster that waited for room, and have found it
	// queues are what is still to be tried in this round, each in its order; which comes next is open.
	queues [][]*placement.Pod
	job    int // the number of the job whose pods are being placed
}

// fate is what becomes of a pod that is planned, or that is made again in the place of a victim.
type fate struct {
	job     int
	role    string
	state   State
	nodes   []string // where it may go, the likeliest first
	others  int      // how many nodes more are equal to those
	after   []victim // who has to stop first
	why     string   // it waits, or is rejected
	passing bool     // it is rejected only as long as a quota is used up
	bound   string   // where it is; "" while it waits
	// instead is the victim that it is made in the place of; nil for a planned pod.
	instead *placement.Pod
}

// victim is a pod that stops, or is gone, so that others can start.
type victim struct {
	pod     *placement.Pod
	node    string
	job     int    // for whom
	by      string // the role of the pod that evicts it; "" for one that stops for other reasons
	queue   bool   // its queue evicts it, not the scheduler
	failed  bool   // its Job fails for the loss of another pod, and deletes it
	chosen  bool   // there were equal choices without it
	stopped bool
}

// evicted says whether the scheduler evicts it.
func (v victim) evicted() bool { return !v.queue && !v.failed && v.job != noJob }

// splitter is how runs split and join.
type splitter struct {
	most int // so many runs are followed at a time
	// merge joins runs that have come to the same state.
	merge func([]*run) []*run
	// distinct leaves out choices that lead to the same as others.
	distinct func(*run, []choice) []choice
}

// share is into how many runs each of some may split.
func (s splitter) share(runs int) int { return max(s.most/runs, 1) }

// place gives pods to the scheduler at one time, those of each list in their order and the lists in any, and continues
// until nothing changes any more: what stops is gone, what waits has been tried again. It returns the runs into which
// this one splits.
func (r *run) place(lists ...[]*placement.Pod) []*run {
	pods := slices.Concat(lists...)
	r.view()
	starts := r.afterQueues(pods)
	for _, one := range starts {
		one.queues = nil
		for _, list := range lists {
			one.queues = append(one.queues, byPriority(list))
		}
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
			one.queues = one.retries(pods)
		}
		runs = r.merge(append(next, r.each(cleared)...))
	}
	return runs
}

// retries are the pods to try again: for how long each of them backs off is open, and so whether those for which room
// is kept come before others. That makes a difference only where one of the others finds something.
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

// view notes what budgets allow now, if that is another than before.
func (r *run) view() {
	if now := r.cluster.Budgets(); len(r.views) == 0 || !now.Equal(r.views[len(r.views)-1]) {
		r.views = append(r.views, now)
	}
}

// byPriority are pods in the order of the scheduling queue.
func byPriority(pods []*placement.Pod) []*placement.Pod {
	pods = slices.Clone(pods)
	slices.SortStableFunc(pods, func(a, b *placement.Pod) int { return cmp.Compare(b.Priority, a.Priority) })
	return pods
}

// each tries what is in the queues of some runs, until they are empty.
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

// way is a run in which a pod is tried next.
type way struct {
	*run
	pod *placement.Pod
}

// nexts are the ways in which a run continues: by the first pod of each of its queues, in at most so many.
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

// schedule tries one pod, in as many runs as there are equal choices, and at most so many.
func (r *run) schedule(pod *placement.Pod, most int) []*run {
	f := r.fates[pod]
	if why := unscheduled(pod.Object()); f != nil && why != "" {
		f.state, f.why = Waits, why
		return []*run{r}
	}
	if node := pod.Object().Spec.NodeName; f != nil && node != "" {
		r.bind(pod, f, node)
		return []*run{r}
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

// follow carries a decision out, and those that may be made instead, in as many runs as there are, and at most so many.
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

// unscheduled says why kube-scheduler does not try a pod; "" where it does.
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

// bind puts a pod on the node that its specification names: no scheduler is asked, and nobody is evicted.
func (r *run) bind(pod *placement.Pod, f *fate, node string) {
	if f.bound != "" {
		return
	}
	if !r.cluster.Knows(node) {
		f.state, f.why = Waits, "its node "+node+" is not there"
		return
	}
	r.cluster.AddPod(pod, node)
	f.state, f.bound, f.nodes = Starts, node, []string{node}
}

// take carries a decision out: the pod is bound, or its victims begin to stop and the node is kept for it.
func (r *run) take(pod *placement.Pod, c choice, equal []choice) {
	f := r.fates[pod]
	if f == nil { // a pod of the cluster that waited for room: what it does is nobody's of the planned jobs
		f = &fate{job: noJob}
	}
	f.nodes, f.others = namesOf(c, equal)
	if len(c.victims) == 0 {
		r.cluster.AddPod(pod, c.node)
		if slices.Contains(r.competitors, pod) {
			r.competitors = slices.DeleteFunc(r.competitors, func(p *placement.Pod) bool { return p == pod })
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
		if r.stops(v) { // for another pod already, or because it is being deleted
			continue
		}
		r.lost = append(r.lost, victim{pod: v, node: c.node, job: f.job, by: f.role, chosen: spared(v, equal)})
		if theirs := r.fates[v]; theirs != nil { // planned too, and less important
			theirs.state, theirs.bound, theirs.why = Waits, "", "it makes room for others"
		}
	}
}

// spared says whether some of equal choices leaves a pod alone.
func spared(pod *placement.Pod, equal []choice) bool {
	return slices.ContainsFunc(equal, func(c choice) bool { return !slices.Contains(c.victims, pod) })
}

// stops says whether a pod is stopping, or has stopped.
func (r *run) stops(pod *placement.Pod) bool {
	return slices.ContainsFunc(r.lost, func(v victim) bool { return v.pod == pod && !v.stopped })
}

// stoppedOn are the pods that had to stop on a node before this one could start there.
func (r *run) stoppedOn(node string, f *fate) []victim {
	var found []victim
	for _, v := range r.lost {
		if v.stopped && v.node == node && (v.job == f.job || v.job == noJob) && !slices.ContainsFunc(f.after, func(a victim) bool { return a.pod == v.pod }) {
			found = append(found, v)
		}
	}
	return found
}

// clear takes away what is stopping.
func (r *run) clear() { r.clearNodes(func(string) bool { return true }) }

// clearNodes takes away what is stopping on some nodes.
func (r *run) clearNodes(on func(node string) bool) {
	for i := range r.lost {
		if v := &r.lost[i]; !v.stopped && on(v.node) {
			r.cluster.RemovePod(v.pod, v.node)
			v.stopped = true
		}
	}
}

// clearings are the ways in which what is stopping may be gone when the scheduler looks again: all of it or, where that
// makes a difference, that of one node only, as pods take different times to stop. None where nothing is stopping.
func (r *run) clearings(pods []*placement.Pod, most int) []*run {
	var nodes []string
	for _, v := range r.lost {
		if !v.stopped && !slices.Contains(nodes, v.node) {
			nodes = append(nodes, v.node)
		}
	}
	if len(nodes) == 0 {
		return nil
	}
	ways := []*run{r}
	if len(nodes) > 1 && r.orderMatters(pods) {
		follow := min(most-1, len(nodes))
		r.cut = r.cut || follow < len(nodes)
		for _, node := range nodes[:follow] {
			way := r.fork()
			way.clearNodes(func(other string) bool { return other == node })
			ways = append(ways, way)
		}
	}
	r.clear()
	return ways
}

// afterQueues are the ways in which pods that queues have evicted may be on their nodes still when the pods are created
// that get their quota: Kueue gives it away when they begin to stop.
func (r *run) afterQueues(pods []*placement.Pod) []*run {
	if !slices.ContainsFunc(r.lost, func(v victim) bool { return v.queue && !v.stopped }) {
		return []*run{r}
	}
	still := r.fork()
	return append(r.clearings(pods, r.most), still)
}

// orderMatters says whether a pod that waits for its victims could go to another node if others stop before them:
// beside all pods that wait for room as well, each on the node that is kept for it.
func (r *run) orderMatters(pods []*placement.Pod) bool {
	then := r.cluster.Clone()
	for _, v := range r.lost {
		if !v.stopped {
			then.RemovePod(v.pod, v.node)
		}
	}
	waiting := r.waiting(pods)
	for _, pod := range waiting {
		kept := then.Nominated(pod) // "" before its first try
		if slices.ContainsFunc(then.Fits(pod), func(node string) bool { return node != kept }) {
			return true
		}
	}
	return false
}

// stop lets a pod stop for another reason than the scheduler's.
func (r *run) stop(pod *placement.Pod, node string) {
	gone := func(v victim) bool { return v.pod == pod && v.stopped && r.fates[pod] == nil }
	if r.stops(pod) || slices.ContainsFunc(r.lost, gone) { // the scheduler has evicted it before its queue does
		return
	}
	r.cluster.Evict(pod, node)
	r.lost = append(r.lost, victim{pod: pod, node: node, job: r.job, queue: true})
}

// waiting are the pods to try again: those that have waited for longer come first.
func (r *run) waiting(pods []*placement.Pod) []*placement.Pod {
	queue := slices.Clone(r.competitors)
	for _, pod := range pods {
		if f := r.fates[pod]; f != nil && f.bound == "" {
			queue = append(queue, pod)
		}
	}
	return queue
}

// unbound are the pods that the scheduler may try again, in the order of their making: planned ones, and those made
// again.
func (r *run) unbound() []*placement.Pod {
	var pods []*placement.Pod
	for pod, f := range r.fates {
		if f.state == Waits && f.bound == "" {
			pods = append(pods, pod)
		}
	}
	slices.SortFunc(pods, func(a, b *placement.Pod) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Name, b.Name))
	})
	return pods
}

// fork copies a run.
func (r *run) fork() *run {
	other := *r
	other.cluster = r.cluster.Clone()
	other.fates = make(map[*placement.Pod]*fate, len(r.fates))
	other.lost = slices.Clone(r.lost)
	other.others = slices.Clone(r.others)
	other.competitors = slices.Clone(r.competitors)
	other.views = slices.Clone(r.views)
	other.queues = slices.Clone(r.queues)
	other.seated = slices.Clone(r.seated)
	for pod, f := range r.fates {
		copied := *f
		copied.after = slices.Clone(f.after)
		other.fates[pod] = &copied
	}
	return &other
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
