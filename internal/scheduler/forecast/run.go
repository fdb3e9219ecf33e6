package forecast

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/placement"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/podadmission"
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
	outcomes map[*placement.Pod]*podOutcome
	lost     []victim
	repeats  bool     // a pod is evicted that was evicted, and created again, before
	others   []victim // pods that may stop too, by choices that were not followed
	// competitors are pending pods of the cluster that come before planned ones: they are tried again whenever room
	// becomes free.
	competitors []*placement.Pod
	lesser      []*placement.Pod // pending pods of the cluster with lower priority
	scheduled   []located        // pods of the cluster that were pending and have found a node
	// independent are pending pods of the cluster that find a node or victims without the planned jobs.
	independent map[*placement.Pod]bool
	// succeeds reports, for the Jobs of evicted pods for which it matters, whether those end with exit code 0. It is not
	// changed, but replaced.
	succeeds map[types.UID]bool
	// queues are the pods still to try in this round, each queue in its order; which queue comes next is open.
	queues [][]*placement.Pod
	from   int // the queue from which the last pod was taken
	job    int // the number of the job whose pods are being placed
	// apiServer has admitted the planned pods. It is not changed.
	apiServer *podadmission.Controller
	// later are the steps that begin when the steps of their jobs before them have, of jobs created at the same time. It is
	// not changed, but replaced.
	later []step
}

// podOutcome is the outcome for a planned pod, or for the replacement of a victim.
type podOutcome struct {
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
	// alone is true for a pod that no controller creates again, and gone if it has been evicted.
	alone, gone bool
}

// waits reports whether the scheduler may try the pod again.
func (f *podOutcome) waits() bool { return f.state == Waits && f.bound == "" && !f.gone }

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
	*budget
	// merge joins runs that have come to the same state.
	merge func([]*run) []*run
	// history describes the state of a run and everything that the run says about how it came there.
	history func(*run) string
	// distinct removes choices that lead to the same state as others.
	distinct func(*run, []choice) []choice
	// kind is equal for pending pods of the cluster that the scheduler does not distinguish.
	kind func(*placement.Pod) string
	// early are the runs in which replacements of victims are tried before other victims are gone.
	early func(r *run) []*run
	// ends are the runs in which the evicted pods of Jobs fail or succeed.
	ends func(r *run) []*run
	// begin adds the pods of later steps that can begin to the queues of a run.
	begin func(r *run)
}

// budget bounds the runs of one forecast, whichever of its loops they are in.
type budget struct {
	most     int  // number of runs that are followed at a time
	followed int  // number of runs that are followed now
	tries    int  // how often pods were tried in all runs
	proved   bool // how many of which pods are evicted, which is worth some tries to know better
	late     func() bool
	wasLate  bool // late was true before all runs came to their end
}

// triesWithProof is how often pods are tried where the evictions are proved: mostly all ways are found in some hundred tries,
// or never. Without budgets (PDBs) the proof says nearly as much.
const triesWithProof = 2_000

// isLate reports whether the time is up, or more of it is not worth while.
func (b *budget) isLate() bool {
	b.wasLate = b.wasLate || b.late()
	return b.wasLate || b.proved && b.tries > triesWithProof
}

// maxTries bounds how often pods are tried in all runs before no more of them split: at most some five seconds of work.
const maxTries = 50_000

// room is the number of runs into which one may split, itself included.
func (b *budget) room() int {
	if b.tries > maxTries || b.isLate() {
		return 1
	}
	return max(b.most-b.followed+1, 1)
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
		if f := r.outcomes[pod]; f != nil && f.waits() && !slices.Contains(queue, pod) {
			queue = append(queue, pod)
		}
	}
	return queue
}

// unbound are the pods that the scheduler may try again, in the order of their creation: planned ones, and replacements
// of victims.
func (r *run) unbound() []*placement.Pod {
	var pods []*placement.Pod
	for pod, f := range r.outcomes {
		if f.waits() {
			pods = append(pods, pod)
		}
	}
	slices.SortFunc(pods, func(a, b *placement.Pod) int {
		x, y := r.outcomes[a], r.outcomes[b]
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.String(), b.String()), cmp.Compare(x.job, y.job), cmp.Compare(x.role, y.role))
	})
	return pods
}

// fork copies a run, and both are followed.
func (r *run) fork() *run {
	r.followed++
	other := *r
	other.cluster = r.cluster.Clone()
	other.outcomes = make(map[*placement.Pod]*podOutcome, len(r.outcomes))
	other.lost = slices.Clone(r.lost)
	other.others = slices.Clone(r.others)
	other.competitors = slices.Clone(r.competitors)
	other.lesser = slices.Clone(r.lesser)
	other.views = slices.Clone(r.views)
	other.queues = slices.Clone(r.queues)
	other.scheduled = slices.Clone(r.scheduled)
	for pod, f := range r.outcomes {
		copied := *f
		copied.after = slices.Clone(f.after)
		other.outcomes[pod] = &copied
	}
	return &other
}

// drop says that a run is not followed any more.
func (r *run) drop() { r.followed-- }

// inTime are the runs to follow: when it is late one of them, which keeps the victims of the others as possible ones.
func (s splitter) inTime(runs []*run) []*run {
	if len(runs) < 2 || !s.isLate() {
		return runs
	}
	one := runs[0]
	one.cut = true
	for _, other := range runs[1:] {
		for _, v := range slices.Concat(other.lost, other.others) {
			one.alsoPossible(v)
		}
		other.drop()
	}
	return runs[:1]
}
