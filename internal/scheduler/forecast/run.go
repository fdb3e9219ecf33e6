package forecast

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/placement"
)

// maxRounds bounds how often pods are tried again after others have stopped: each round binds or evicts a pod.
const maxRounds = 20

// run is one possible sequence of scheduling decisions. If kube-scheduler chooses at random between equals, a run
// splits: one continues with each choice.
type run struct {
	cluster *placement.Cluster
	// views are the states of PodDisruptionBudgets since pods were last submitted together, the latest last: their
	// controller observes evictions with a delay, and the scheduler may read any of the states, but none that is older
	// than one that it has read.
	views []placement.Budgets
	cut   bool
	splitter
	fates  map[*placement.Pod]*fate
	lost   []victim
	others []victim // pods that may stop too, by choices that were not followed
	// competitors are pending pods of the cluster that come before planned ones: they are tried again whenever room
	// becomes free.
	competitors []*placement.Pod
	lesser      []*placement.Pod // pending pods of the cluster with lower priority
	seated      []located        // pods of the cluster that were pending and have found a node
	// independent are pending pods of the cluster that find a node or victims without the planned jobs.
	independent map[*placement.Pod]bool
	// succeeds reports, for the Jobs of evicted pods for which it matters, whether those end with exit code 0. It is not
	// changed, but replaced.
	succeeds map[types.UID]bool
	// queues are the pods still to try in this round, each queue in its order; which queue comes next is open.
	queues [][]*placement.Pod
	from   int // the queue from which the last pod was taken
	job    int // the number of the job whose pods are being placed
}

// fate is the outcome for a planned pod, or for the replacement of a victim.
type fate struct {
	job     int
	role    string
	state   State
	nodes   []string // where it may start, the most likely first
	others  int      // number of further nodes that are equal to those
	after   []victim // pods that have to stop first
	why     string   // the reason why it waits, or is rejected
	passing bool     // it is rejected only while a quota is exhausted
	bound   string   // its node; "" while it waits
	// instead is the victim that it replaces; nil for a planned pod.
	instead *placement.Pod
}

// victim is a pod that is stopping or gone, so that others can start.
type victim struct {
	pod     *placement.Pod
	node    string
	job     int    // the job that it stops for
	by      string // the role of the pod that evicts it; "" for one that stops for other reasons
	queue   bool   // its queue evicts it, not the scheduler
	failed  bool   // its Job fails because of the loss of another pod, and deletes it
	chosen  bool   // there were equal choices without it
	stopped bool
}

// evicted reports whether the scheduler evicts the pod.
func (v victim) evicted() bool { return !v.queue && !v.failed && v.job != noJob }

// splitter decides how runs split and join.
type splitter struct {
	most int // number of runs that are followed at a time
	// tries is how often pods were tried in all runs.
	tries *int
	// merge joins runs that have come to the same state.
	merge func([]*run) []*run
	// distinct removes choices that lead to the same state as others.
	distinct func(*run, []choice) []choice
	// kind is equal for pending pods of the cluster that the scheduler does not distinguish.
	kind func(*placement.Pod) string
	// early are the runs in which replacements of victims are tried before other victims are gone.
	early func(r *run, most int) []*run
	// ends are the runs, at most the given number, in which the evicted pods of Jobs fail or succeed.
	ends func(r *run, most int) []*run
}

// maxTries bounds how often the scheduler is asked in all runs before no more of them split: at most some ten seconds of work.
const maxTries = 100_000

// room is the number of runs into which one may split, beside others.
func (s splitter) room(others int) int {
	if *s.tries > maxTries {
		return 1
	}
	return max(s.most-others, 1)
}

// view notes the current state of the budgets, if it differs from the last one.
func (r *run) view() {
	if now := r.cluster.Budgets(); len(r.views) == 0 || !now.Equal(r.views[len(r.views)-1]) {
		r.views = append(r.views, now)
	}
}

// waiting are the pods to try again: pending pods of the cluster, then those of the given pods that wait, then those
// that were submitted earlier.
func (r *run) waiting(pods []*placement.Pod) []*placement.Pod {
	queue := slices.Clone(r.competitors)
	for _, pod := range slices.Concat(pods, r.unbound()) {
		if f := r.fates[pod]; f != nil && f.bound == "" && f.state == Waits && !slices.Contains(queue, pod) {
			queue = append(queue, pod)
		}
	}
	return queue
}

// unbound are the pods that the scheduler may try again, in the order of their creation: planned ones, and replacements
// of victims.
func (r *run) unbound() []*placement.Pod {
	var pods []*placement.Pod
	for pod, f := range r.fates {
		if f.state == Waits && f.bound == "" {
			pods = append(pods, pod)
		}
	}
	slices.SortFunc(pods, func(a, b *placement.Pod) int {
		x, y := r.fates[a], r.fates[b]
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.String(), b.String()), cmp.Compare(x.job, y.job), cmp.Compare(x.role, y.role))
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
