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
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/placement"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/podadmission"
)

// mostRuns is the number of ways of breaking ties that the forecast follows at a time: enough for every small tie, and
// for the first of many consecutive ones. Every run works on a copy of the cluster, so that large clusters get fewer.
func mostRuns(nodes int) int {
	switch {
	case nodes <= 20:
		return 20_000
	case nodes <= 100:
		return 256
	case nodes <= 1000:
		return 4
	default:
		return 1
	}
}

// Make returns the forecast for a job on a cluster. The jobs before it are planned too, and start first.
func Make(s *Snapshot, before []Job, job Job) Answer {
	return of(s, append(slices.Clip(before), job), len(before))
}

// All returns the forecasts for jobs that are created together: one after the other, or all at about the same time.
func All(s *Snapshot, jobs []Job) []Answer {
	if len(jobs) == 0 {
		return nil
	}
	answers := make([]Answer, 0, len(jobs))
	f, runs := explore(s, jobs) // the same for every job
	for number := range jobs {
		answers = append(answers, f.estimated(f.answer(number, runs), number))
	}
	return answers
}

// of returns the forecast for one of several jobs.
func of(s *Snapshot, jobs []Job, number int) Answer {
	f, runs := explore(s, jobs)
	return f.estimated(f.answer(number, runs), number)
}

// estimated adds an estimated time to the answer for a job that waits.
func (f *forecast) estimated(a Answer, number int) Answer {
	if a.Outcome != Pends {
		return a
	}
	for _, name := range unknownEnds(f.snapshot) {
		if !slices.Contains(a.Asks, name) {
			a.Asks = append(a.Asks, name)
		}
	}
	if a.Estimate = f.admissionEstimate(number); a.Estimate == nil && len(f.snapshot.Nodes) <= maxEstimateNodes {
		a.Estimate = estimate(f.snapshot, f.jobs, number)
	}
	return a
}

// decide returns an answer without an estimated time.
func decide(s *Snapshot, jobs []Job, number int) Answer {
	f, runs := explore(s, jobs)
	return f.answer(number, runs)
}

// answer is that for one of the jobs, from what may happen to all of them.
func (f *forecast) answer(number int, runs []*run) Answer {
	one := *f
	one.number, one.notes = number, &notes{slices.Clone(f.notes.reasons)}
	return one.conclude(runs)
}

// explore follows what may happen to the jobs.
func explore(s *Snapshot, jobs []Job) (*forecast, []*run) {
	f := newForecast(s, jobs)
	f.ask()
	start := &run{
		splitter: splitter{mostRuns(len(s.Nodes)), new(int), f.merged, f.distinct, kinds(), f.early, f.ends}, cluster: f.cluster, fates: map[*placement.Pod]*fate{},
		lost: f.stopping, competitors: f.competitors(), lesser: f.lesser(),
	}
	start.independent = start.findNow(slices.Concat(start.competitors, start.lesser))
	starts := []*run{start}
	var together []*run
	if first, rest := f.simultaneous(); len(first) > 1 {
		// Terraform creates the jobs of one plan at about the same time, or one after the other: both are possible.
		together = f.take(starts[0].fork(), first...)
		if len(rest) > 0 && slices.ContainsFunc(together, (*run).evicts) {
			f.notes.add(CreationOrder, f.jobs[rest[0].job].String(), "%s creates its pods one after another, and which of them come while victims "+
				"of another planned job stop is not followed", f.jobs[rest[0].job])
		}
		together = f.through(together, rest)
	}
	return f, f.merged(append(f.through(starts, f.steps), together...))
}

// evicts reports whether any pod stops for planned pods.
func (r *run) evicts() bool {
	return slices.ContainsFunc(r.lost, func(v victim) bool { return v.job != noJob })
}

// through executes steps, one after the other.
func (f *forecast) through(runs []*run, steps []step) []*run {
	for _, step := range steps {
		var next []*run
		for _, r := range runs {
			next = append(next, f.take(r, step)...)
		}
		runs = f.merged(next)
	}
	return runs
}

// simultaneous returns the first steps of the jobs, and all other steps.
func (f *forecast) simultaneous() (first, rest []step) {
	seen := map[int]bool{}
	for _, step := range f.steps {
		if seen[step.job] {
			rest = append(rest, step)
		} else {
			first = append(first, step)
		}
		seen[step.job] = true
	}
	return first, rest
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
	// overlooked are sentences about pending pods that are not tried where room becomes free.
	overlooked []string
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
	s = withControllers(s, jobs)
	f := &forecast{
		snapshot: s, jobs: queuedByDefault(s.Queues, jobs), notes: notes, pods: s.Pods,
		at: map[types.UID]located{}, planned: map[*placement.Pod]planned{},
	}
	gone := f.gone()
	if len(gone) > 0 {
		f.pods = slices.DeleteFunc(slices.Clone(s.Pods), func(pod *corev1.Pod) bool { return gone[pod.UID] })
	}
	namespaces := f.namespaces()
	f.cluster = placement.New(placement.Snapshot{
		Nodes: s.Nodes, Pods: f.pods, PDBs: s.Budgets, Namespaces: namespaces, PriorityClasses: s.PriorityClasses,
		Services: s.Services, ReplicationControllers: s.ReplicationControllers, ReplicaSets: s.ReplicaSets, StatefulSets: s.StatefulSets,
		Devices: s.devices(), Storage: s.storage(), Version: s.Version,
	})
	f.apiServer = podadmission.New(podadmission.Cluster{
		Namespaces: namespaces, PriorityClasses: s.PriorityClasses, RuntimeClasses: s.RuntimeClasses, LimitRanges: s.LimitRanges, Quotas: s.Quotas,
	}, f.pods)
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
		f.queues.beside = besideQueues(f.jobs)
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

// ask submits every part that has a queue to that queue, and builds the steps. Pods that a master creates never reach
// their own queue if the master's queue does not let it start.
func (f *forecast) ask() {
	for number, job := range f.jobs {
		for _, note := range job.Approximate {
			f.notes.add(NotModelled, job.Noun+" "+job.String(), "%s", note)
		}
		starts := true
		uncreated := f.createObject(job)
		for _, stage := range job.Stages {
			step := step{job: number}
			later := waves{}
			for _, part := range stage {
				ready := part.Pods
				if !starts {
					ready = nil
				} else if part.Queue != "" {
					ready = f.admit(&step, job, part)
				}
				for _, pod := range part.Pods {
					at := slices.IndexFunc(ready, func(r Pod) bool { return r.Role == pod.Role })
					switch {
					case uncreated != nil:
						placed, _ := f.enter(number, pod, false)
						f.reject(placed, uncreated, &step)
					case job.Suspended && part.Queue == "":
						placed, _ := f.enter(number, pod, false)
						step.suspended, step.order = append(step.suspended, placed), append(step.order, placed)
					case at < 0:
						placed, _ := f.enter(number, pod, false)
						step.held, step.order = append(step.held, placed), append(step.order, placed)
					case pod.Wave > 0:
						f.create(number, ready[at], later.step(number, pod.Wave))
					default:
						f.create(number, ready[at], &step)
					}
				}
				starts = starts && (len(ready) > 0 || part.optional())
			}
			f.steps = append(f.steps, later.after(step, f.planned)...)
		}
	}
	if f.queues != nil {
		f.queues.noteFollowers()
	}
}

// create submits a pod to the API server, and notes the result in a step.
func (f *forecast) create(job int, pod Pod, into *step) {
	placed, refusal := f.enter(job, pod, true)
	into.order = append(into.order, placed)
	if refusal == nil {
		into.pods = append(into.pods, placed)
		return
	}
	f.reject(placed, refusal, into)
}

// createObject submits the object of a job to the API server, as far as quotas count such objects; nil if it is
// created.
func (f *forecast) createObject(job Job) *podadmission.Refusal {
	if _, isJob := job.Object.(*batchv1.Job); !isJob && job.Noun != aJob && job.Noun != aTask && job.Noun != aTrainingJob || job.Grows {
		return nil
	}
	return f.apiServer.ChargeObject(job.Key().Namespace, "jobs.batch")
}

// reject notes a pod that the API server rejects.
func (f *forecast) reject(pod *placement.Pod, refusal *podadmission.Refusal, into *step) {
	if !slices.Contains(into.order, pod) {
		into.order = append(into.order, pod)
	}
	into.rejected = append(into.rejected, rejection{pod, refusal})
	if refusal.Passing && len(f.jobs) > 1 {
		f.notes.add(QuotaOrder, "Namespace "+pod.Namespace(), "a quota has room for some of the pods only, and which of the jobs create theirs first is not known")
	}
}

// admit submits a part to its queue, and returns the pods that the queue lets start.
func (f *forecast) admit(step *step, job Job, part Part) []Pod {
	if f.queues == nil {
		step.rulings = append(step.rulings, ruling{part, admission{why: "the cluster has no queues"}})
		return nil
	}
	// Kueue counts what the API server adds to pods: requests of LimitRanges, overheads of RuntimeClasses.
	part.Pods = slices.Clone(part.Pods)
	for i, pod := range part.Pods {
		part.Pods[i].Pod, _ = f.apiServer.Complete(f.withPresent(pod))
	}
	a := f.queues.admit(step.job, job, part, f.priorityOf(part))
	step.rulings = append(step.rulings, ruling{part, a})
	if !a.admitted || len(a.checks) > 0 {
		return nil
	}
	return f.queues.started(part, a)
}

// enter prepares a planned pod for scheduling, as the API server stores it. A created pod counts in its namespace's
// quotas; the refusal is the reason why it cannot be created.
func (f *forecast) enter(job int, pod Pod, created bool) (*placement.Pod, *podadmission.Refusal) {
	object, refusal := f.apiServer.Complete(f.withPresent(pod))
	switch {
	case pod.Answered && !f.snapshot.RulesPlanned:
		refusal = pod.Refusal
	case pod.Answered && pod.Refusal != nil && refusal == nil:
		f.notes.add(PlannedUnknown, pod.Role, "the API server rejects a pod now (%s), and may admit it once planned objects that decide about it are there", pod.Refusal.Message)
	}
	if refusal == nil && created {
		refusal = f.apiServer.Charge(object)
	}
	placed := f.cluster.Pod(object)
	placed.Started = f.started
	pod.Pod = object
	f.planned[placed] = planned{job, pod}
	return placed, refusal
}

// withPresent is the pod without classes and namespace that do not exist, if others may create them before it.
func (f *forecast) withPresent(pod Pod) *corev1.Pod {
	object := *pod.Pod
	if f.snapshot.RuntimeClasses == nil && object.Spec.RuntimeClassName != nil {
		f.notes.add(NotAllRead, "RuntimeClass "+*object.Spec.RuntimeClassName, "RuntimeClass %s could not be read: it may add an overhead and a node selector", *object.Spec.RuntimeClassName)
	}
	if !f.snapshot.Open {
		return &object
	}
	if name := object.Spec.PriorityClassName; !f.apiServer.HasPriorityClass(name) {
		f.notes.add(MissingClass, "PriorityClass "+name, "PriorityClass %s is not there: its pods count with priority 0, and could not be made", name)
		object.Spec.PriorityClassName = ""
		object.Spec.Priority = new(int32)
	}
	if name := object.Spec.RuntimeClassName; name != nil && !f.apiServer.HasRuntimeClass(*name) {
		f.notes.add(MissingClass, "RuntimeClass "+*name, "RuntimeClass %s is not there: its pods could not be made", *name)
		object.Spec.RuntimeClassName = nil
	}
	return &object
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

// priorityOf is the priority of a part without a class of its queue: that of the first pod set that names a class, else
// that of its first pods.
func (f *forecast) priorityOf(part Part) int32 {
	if len(part.Pods) == 0 {
		return 0
	}
	spec := &part.Pods[0].Spec
	if part.PriorityClassName != "" {
		spec = &corev1.PodSpec{PriorityClassName: part.PriorityClassName}
	} else if at := slices.IndexFunc(part.Pods, func(p Pod) bool { return p.Spec.PriorityClassName != "" }); at >= 0 {
		spec = &part.Pods[at].Spec
	}
	return f.apiServer.PriorityOf(spec)
}
