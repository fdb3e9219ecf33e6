// Package forecast predicts, before a job is created, what happens to it and to other jobs: whether its queue admits
// it, where and when its pods start, which pods they evict and what happens to the evicted jobs. It combines the two
// halves of the engine, quota (Kueue) and placement (kube-scheduler), over one snapshot of a cluster.
//
// The package is pure: it takes a snapshot and the planned jobs, and returns an answer as data and as text. Its
// guarantee: what happens is one of the alternatives in the answer, as long as the cluster does not change after the
// snapshot and the answer names nothing as approximate. If kube-scheduler chooses at random between equals, the answer
// names all of them. Package snapshot reads the cluster, and package provider presents the answer.
package forecast

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/placement"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/podadmission"
)

// mostRuns is the number of ways of breaking ties that the forecast follows at a time: enough for every small tie, and
// for the first of many consecutive ones. Every run works on a copy of the cluster, so that large clusters get fewer.
func mostRuns(nodes int) int {
	switch {
	case nodes <= 20:
		return 8_000
	case nodes <= 100:
		return 256
	case nodes <= 1000:
		return 4
	default:
		return 1
	}
}

// Run returns the forecast for a job on a cluster. The jobs before it are planned too, and start first. When the context
// ends, nothing more is explored, and the answer says which of its claims are not certain for that.
func Run(ctx context.Context, s *Snapshot, before []Job, job Job) Answer {
	return answers(ctx, s, append(slices.Clip(before), job), len(before))[0]
}

// All returns the forecasts for jobs that are created together: one after the other, or all at about the same time.
func All(ctx context.Context, s *Snapshot, jobs []Job) []Answer {
	numbers := make([]int, len(jobs))
	for number := range jobs {
		numbers[number] = number
	}
	return answers(ctx, s, jobs, numbers...)
}

// answers are the forecasts for some of the jobs, by their numbers.
func answers(ctx context.Context, s *Snapshot, jobs []Job, numbers ...int) []Answer {
	if len(numbers) == 0 {
		return nil
	}
	all := make([]Answer, len(numbers))
	late := deadlineOf(ctx)
	for i, o := range orders(s, jobs) {
		if i > 0 && late() {
			for at := range all {
				all[at].Approximate = withReason(all[at].Approximate, NewReason(TooManyChoices, "",
					"there was no time to follow all orders in which the planned jobs may reach their queues"))
			}
			break
		}
		runs := o.explore(late) // the same for every job
		for at, number := range numbers {
			place := slices.Index(o.places, number)
			answer := o.estimated(o.answer(place, runs), place, late)
			if i > 0 {
				answer = all[at].or(answer)
			}
			all[at] = answer
		}
	}
	return all
}

// deadlineOf reports whether it is time to stop following runs. What was followed must then be concluded in the time of
// the context too, which takes up to a fifth of it.
func deadlineOf(ctx context.Context) (late func() bool) {
	last, limited := ctx.Deadline()
	if limited {
		last = last.Add(-time.Until(last) / 5)
	}
	return func() bool { return ctx.Err() != nil || limited && time.Now().After(last) }
}

// estimated adds an estimated time to the answer for a job that waits.
func (f *forecast) estimated(a Answer, number int, late func() bool) Answer {
	if a.Outcome != Pends {
		return a
	}
	for _, name := range unknownEnds(f.snapshot) {
		if !slices.Contains(a.NeedsConfigMaps, name) {
			a.NeedsConfigMaps = append(a.NeedsConfigMaps, name)
		}
	}
	if a.Estimate = f.admissionEstimate(number); a.Estimate == nil && len(f.snapshot.Nodes) <= maxEstimateNodes {
		a.Estimate = estimate(f.snapshot, f.jobs, number, late)
	}
	return a
}

// decide returns an answer without an estimated time, with the queues' decisions in the order of the jobs.
func decide(s *Snapshot, jobs []Job, number int, late func() bool) Answer {
	f := newForecast(s, jobs)
	f.ask()
	return f.answer(number, f.explore(late))
}

// answer is that for one of the jobs, from what may happen to all of them.
func (f *forecast) answer(number int, runs []*run) Answer {
	one := *f
	one.number, one.notes = number, &notes{slices.Clone(f.notes.reasons)}
	return one.conclude(runs)
}

// forecast is the state of one computation of an answer.
type forecast struct {
	snapshot *Snapshot
	jobs     []Job
	number   int // the index of the job whose answer is concluded: see answer
	notes    *notes
	queues   *queues
	pods     []*corev1.Pod // the pods that are not gone when the jobs start
	cluster  *placement.Cluster
	symmetry *symmetry
	// The numbers by which states of runs are compared, and those of pods for which they were computed.
	numbers     numbers
	kindNumbers map[kindKey]uint32
	lookNumbers map[*placement.Pod]uint32
	// apiServer admits the planned pods, one after the other.
	apiServer *podadmission.Controller
	started   time.Time             // the start time of planned pods, by which the scheduler compares pods
	at        map[types.UID]located // the positions of the cluster's pods
	stopping  []victim              // pods that are being deleted
	planned   map[*placement.Pod]planned
	staff     map[types.NamespacedName]staff
	batchJobs map[types.UID]*batchv1.Job             // of the snapshot, computed on first use
	workloads map[types.NamespacedName][]*corev1.Pod // pods by the workload that admitted them, computed on first use
	steps     []step
	// quotas is the admission of pods before any planned object was created, objects are the resources by which the object
	// of a job counts in quotas, and offered the pods that reach the quotas of the API server once their object exists.
	quotas  *podadmission.Controller
	objects map[int][]string
	offered map[*placement.Pod]bool
	// barredPods are pods whose controllers may not, or may, create them again: see barred.
	barredPods map[*corev1.Pod]bool
	// settled is settles, computed on first use, when the steps are known.
	settled func() bool
	// overlooked are sentences about pending pods that are not tried where room becomes free.
	overlooked []string
	proof      *placement.Displacement // what is proved of evictions; nil: nothing
	unnamed    bool                    // more pods are equal to victims than are named
}

// located is a pod of the cluster on its node.
type located struct {
	pod  *placement.Pod
	node string
}

// planned identifies the job and the part of a planned pod.
type planned struct {
	job int
	Pod
}

func newForecast(s *Snapshot, jobs []Job) *forecast {
	notes := &notes{}
	s, jobs = withAdopted(s, extended(s, jobs))
	s = withControllers(s, jobs)
	f := &forecast{
		snapshot: s, jobs: queuedByDefault(s.Queues, jobs), notes: notes, pods: s.Pods,
		at: map[types.UID]located{}, planned: map[*placement.Pod]planned{}, barredPods: map[*corev1.Pod]bool{},
		objects: map[int][]string{}, offered: map[*placement.Pod]bool{},
	}
	gone := f.gone()
	if len(gone) > 0 {
		f.pods = slices.DeleteFunc(slices.Clone(s.Pods), func(pod *corev1.Pod) bool { return gone[pod.UID] })
	}
	f.settled = sync.OnceValue(f.settles)
	namespaces := f.namespaces()
	f.cluster = placement.New(placement.Snapshot{
		Nodes: s.Nodes, Pods: f.pods, PDBs: s.Budgets, Namespaces: namespaces, PriorityClasses: s.PriorityClasses,
		Services: s.Services, ReplicationControllers: s.ReplicationControllers, ReplicaSets: s.ReplicaSets, StatefulSets: s.StatefulSets,
		Devices: s.devices(), Storage: s.storage(), Version: s.Version,
	})
	f.apiServer = podadmission.New(podadmission.Cluster{
		Namespaces: namespaces, PriorityClasses: s.PriorityClasses, RuntimeClasses: s.RuntimeClasses, LimitRanges: s.LimitRanges, Quotas: s.Quotas,
	}, f.pods)
	f.quotas = f.apiServer.Clone()
	f.started = startOf(s)
	f.symmetry = newSymmetry(s, f.cluster, f.jobs)
	f.numbers, f.kindNumbers, f.lookNumbers = numbers{}, map[kindKey]uint32{}, map[*placement.Pod]uint32{}
	for _, node := range s.Nodes {
		for _, pod := range f.cluster.PodsOn(node.Name) {
			f.at[pod.Object().UID] = located{pod, node.Name}
			if pod.Object().DeletionTimestamp != nil {
				f.stopping = append(f.stopping, victim{pod: pod, node: node.Name, job: noJob})
			}
		}
	}
	f.staff = staffOf(f.pods)
	if f.queues = newQueues(s, f.notes); f.queues != nil {
		f.queues.beside = podsBesideQueues(f.jobs)
		f.noteUnmanaged()
		f.queues.forget(func(w *kueue.Workload) bool {
			return slices.ContainsFunc(w.OwnerReferences, func(o metav1.OwnerReference) bool {
				of := owner{kind: o.Kind, namespace: w.Namespace, name: o.Name}
				return gone[o.UID] || f.makes(of) || f.deletes(of)
			})
		})
	}
	return f
}

// startOf is the start time of planned pods, as the scheduler sees it; zero means later than any other pod. Start times
// are whole seconds: a pod that started in the second of the snapshot may have the same start time as a planned one.
func startOf(s *Snapshot) (started time.Time) {
	for _, pod := range s.Pods {
		if start := pod.Status.StartTime; start != nil && !start.Time.Before(s.AsOf.Truncate(time.Second)) && start.After(started) {
			started = start.Time
		}
	}
	if s.AsOf.IsZero() {
		return time.Time{}
	}
	return started
}

// gone are the pods of jobs that planned jobs replace.
func (f *forecast) gone() map[types.UID]bool {
	gone := map[types.UID]bool{}
	for _, pod := range f.snapshot.Pods {
		if slices.ContainsFunc(ownersOf(pod), func(o owner) bool { return f.makes(o) || f.deletes(o) }) {
			gone[pod.UID] = true
		}
	}
	return gone
}

// makes reports whether a planned job replaces an owner of pods. Training jobs, tasks and Jobs share one namespace of
// names.
func (f *forecast) makes(o owner) bool {
	shared := o.kind == aTrainingJob || o.kind == aTask || o.kind == aJob
	return slices.ContainsFunc(f.jobs, func(job Job) bool {
		return !job.Grows && job.Key() == o.key() && (shared || strings.EqualFold(job.Noun, o.kind))
	})
}

// deletes reports whether the plan deletes an owner of pods.
func (f *forecast) deletes(o owner) bool {
	return slices.Contains(f.snapshot.Deletions, Deletion{Kind: o.kind, Namespace: o.namespace, Name: o.name})
}

const (
	noJob = -1
	// maxPending bounds the number of pending pods, of higher and of lower priority each, that are tried whenever there
	// is room.
	maxPending = 200
)

// leastPriority is the lowest priority of the planned pods.
func (f *forecast) leastPriority() int32 {
	least := int32(math.MaxInt32)
	for pod := range f.planned {
		least = min(least, pod.Priority)
	}
	return least
}

// competitors are the cluster's pending pods of at least the priority of the planned ones: the scheduler tries them
// first.
func (f *forecast) competitors() []*placement.Pod {
	least := f.leastPriority()
	return f.pendingPods("as important", func(pod *placement.Pod) bool { return pod.Priority >= least })
}

// lesser are the cluster's pending pods of lower priority than the planned ones: they may take freed room while a
// planned pod backs off, and be evicted for it later.
func (f *forecast) lesser() []*placement.Pod {
	least := f.leastPriority()
	return f.pendingPods("less important", func(pod *placement.Pod) bool { return pod.Priority < least })
}

// pendingPods are those of the cluster's pending pods that the scheduler tries and that meet a condition.
func (f *forecast) pendingPods(what string, meets func(*placement.Pod) bool) []*placement.Pod {
	var found []*placement.Pod
	for _, pod := range f.cluster.Pending() {
		if o := pod.Object(); meets(pod) && unscheduled(o) == "" && o.DeletionTimestamp == nil {
			found = append(found, pod)
		}
	}
	if len(found) > maxPending {
		f.overlooked = append(f.overlooked, fmt.Sprintf("%d pods that are %s wait for room; only the first %d of them are looked at", len(found), what, maxPending))
		found = found[:maxPending]
	}
	return found
}

// namespaces are those of the cluster and, if others may create them before the jobs, those of the jobs. nil if they
// could not be read.
func (f *forecast) namespaces() []*corev1.Namespace {
	namespaces := f.snapshot.Namespaces
	if namespaces == nil || !f.snapshot.Open {
		return namespaces
	}
	for _, job := range f.jobs {
		if name := job.Key().Namespace; !slices.ContainsFunc(namespaces, func(n *corev1.Namespace) bool { return n.Name == name }) {
			f.notes.add(MissingNamespace, "Namespace "+name, "namespace %s is not there: its labels, limits and quotas are not known", name)
			namespaces = append(slices.Clip(namespaces), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
	}
	return namespaces
}

// withControllers is the snapshot with the jobs' own objects that spread pods.
func withControllers(s *Snapshot, jobs []Job) *Snapshot {
	with := *s
	for _, job := range jobs {
		with.Services = append(slices.Clip(with.Services), job.Services...)
		with.ReplicaSets = append(slices.Clip(with.ReplicaSets), job.ReplicaSets...)
		with.StatefulSets = append(slices.Clip(with.StatefulSets), job.StatefulSets...)
		for _, claim := range job.Claims {
			if indexOf(with.Storage.Claims, claim.Namespace, claim.Name) < 0 {
				with.Storage.Claims = append(slices.Clip(with.Storage.Claims), claim)
			}
		}
	}
	return &with
}
