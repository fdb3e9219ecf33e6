package forecast

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduling/placement"
)

// maxRounds bounds how often pods are tried again after others have stopped: in each round some pod is bound or evicted.
const maxRounds = 20

// run is one way in which pods may come to their places. Where kube-scheduler chooses at random between equals, a run
// splits: one goes on with each choice.
type run struct {
	cluster *placement.Cluster
	budget  int // into how many this one may still split
	cut     bool
	fates   map[*placement.Pod]*fate
	lost    []victim
	others  []victim // who may stop as well, by choices that were not followed
	// competitors are pods of the cluster that wait for room and come before planned ones: they are tried again
	// whenever some is made.
	competitors []*placement.Pod
	job         int // the number of the job whose pods are being placed
}

// fate is what becomes of a pod that is planned, or that is made again in the place of a victim.
type fate struct {
	job    int
	role   string
	state  State
	nodes  []string // where it may go, the likeliest first
	others int      // how many nodes more are equal to those
	after  []victim // who has to stop first
	why    string   // it waits
	bound  string   // where it is; "" while it waits
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
	chosen  bool   // there were equal choices without it
	stopped bool
}

// place gives pods to the scheduler at one time, and goes on until nothing changes any more: what stops is gone, what
// waits has been tried again. It returns the runs into which this one splits.
func (r *run) place(pods []*placement.Pod) []*run {
	runs := r.each(pods)
	for range maxRounds {
		var next []*run
		changed := false
		for _, one := range runs {
			if !one.clear() {
				next = append(next, one)
				continue
			}
			changed = true
			next = append(next, one.each(one.waiting(pods))...)
		}
		runs = next
		if !changed {
			break
		}
	}
	return runs
}

// each schedules pods one after the other, the more important first.
func (r *run) each(pods []*placement.Pod) []*run {
	queue := slices.Clone(pods)
	slices.SortStableFunc(queue, func(a, b *placement.Pod) int { return cmp.Compare(b.Priority, a.Priority) })
	runs := []*run{r}
	for _, pod := range queue {
		var next []*run
		for _, one := range runs {
			next = append(next, one.schedule(pod)...)
		}
		runs = next
	}
	return runs
}

// schedule tries one pod, in as many runs as there are equal choices and the budget allows.
func (r *run) schedule(pod *placement.Pod) []*run {
	d := r.cluster.Schedule(pod)
	f := r.fates[pod]
	if d.Kind != placement.Bound && d.Kind != placement.Preempts {
		if f != nil {
			f.state, f.why = Waits, ""
		}
		return []*run{r}
	}
	choices := []choice{{d.Node, d.Victims}}
	follow := 1
	if f != nil && f.instead == nil { // where others go matters less
		choices = r.choices(pod, d)
		follow = min(max(r.budget, 1), len(choices))
	}
	r.cut = r.cut || follow < len(choices)
	for _, left := range choices[follow:] {
		r.possible(left, f.role)
	}
	r.budget /= follow
	runs := []*run{r}
	for range follow - 1 {
		runs = append(runs, r.fork())
	}
	for i, split := range runs {
		split.take(pod, choices[i], choices)
	}
	return runs
}

// maxPossible bounds how many victims of choices that are not followed are remembered.
const maxPossible = 64

// possible remembers whom a choice that is not followed would evict.
func (r *run) possible(c choice, by string) {
	for _, pod := range c.victims {
		if len(r.others) == maxPossible {
			return
		}
		if !slices.ContainsFunc(r.others, func(v victim) bool { return v.pod == pod }) {
			r.others = append(r.others, victim{pod: pod, node: c.node, job: r.job, by: by})
		}
	}
}

// choice is one of equal decisions.
type choice struct {
	node    string
	victims []*placement.Pod
}

// alwaysAll is up to how many nodes kube-scheduler compares all that a pod fits on (minFeasibleNodesToFind).
const alwaysAll = 100

// choices are a decision and all that are equal to it.
func (r *run) choices(pod *placement.Pod, d placement.Decision) []choice {
	choices := []choice{{d.Node, d.Victims}}
	add := func(c choice) {
		if c.node != d.Node || !slices.Equal(c.victims, d.Victims) { // the others differ from one another
			choices = append(choices, c)
		}
	}
	if d.Kind == placement.Bound && d.Equal == 1 && len(r.cluster.Nodes()) <= alwaysAll {
		return choices
	}
	for _, option := range r.cluster.Alternatives(pod).Options {
		victims := make([]*placement.Pod, len(option.Victims))
		for i, v := range option.Victims {
			victims[i] = v.Pod
		}
		add(choice{option.Node, victims})
		for i, v := range option.Victims {
			for _, or := range v.Or {
				other := slices.Clone(victims)
				other[i] = or
				add(choice{option.Node, other})
			}
		}
	}
	return choices
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
		r.competitors = slices.DeleteFunc(r.competitors, func(p *placement.Pod) bool { return p == pod })
		f.state, f.bound = Starts, c.node
		f.after = append(f.after, r.stoppedOn(c.node, f)...)
		return
	}
	f.state = Waits
	r.cluster.Preempt(pod, c.node, c.victims)
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

// maxNodesNamed bounds how many equal nodes are named.
const maxNodesNamed = 64

func namesOf(c choice, equal []choice) (nodes []string, others int) {
	nodes = []string{c.node}
	for _, e := range equal {
		switch {
		case e.node == c.node:
		case len(nodes) == maxNodesNamed:
			others++
		default:
			nodes = append(nodes, e.node)
		}
	}
	return nodes, others
}

// clear takes away what is stopping, and says whether anything was.
func (r *run) clear() bool {
	changed := false
	for i := range r.lost {
		if v := &r.lost[i]; !v.stopped {
			r.cluster.RemovePod(v.pod, v.node)
			v.stopped, changed = true, true
		}
	}
	return changed
}

// stop lets a pod stop for another reason than the scheduler's.
func (r *run) stop(pod *placement.Pod, node string) {
	if r.stops(pod) {
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

// fork copies a run.
func (r *run) fork() *run {
	other := *r
	other.cluster = r.cluster.Clone()
	other.fates = make(map[*placement.Pod]*fate, len(r.fates))
	other.lost = slices.Clone(r.lost)
	other.others = slices.Clone(r.others)
	other.competitors = slices.Clone(r.competitors)
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
