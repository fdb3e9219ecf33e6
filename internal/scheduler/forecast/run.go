package forecast

import (
	"cmp"
	"slices"

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
	lesser      []*placement.Pod // less important pods of the cluster that wait for room
	seated      []located        // pods of the cluster that waited for room, and have found it
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

// evicted reports whether the scheduler evicts it.
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

// view notes what budgets allow now, if that is another than before.
func (r *run) view() {
	if now := r.cluster.Budgets(); len(r.views) == 0 || !now.Equal(r.views[len(r.views)-1]) {
		r.views = append(r.views, now)
	}
}

// waiting are the pods to try again: those that have waited for longer come first.
func (r *run) waiting(pods []*placement.Pod) []*placement.Pod {
	queue := slices.Clone(r.competitors)
	for _, pod := range pods {
		if f := r.fates[pod]; f != nil && f.bound == "" && f.state != NotAdmitted {
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
	other.lesser = slices.Clone(r.lesser)
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
