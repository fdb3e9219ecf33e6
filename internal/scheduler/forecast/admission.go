package forecast

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/quota"
)

// maxCycles bounds the scheduling cycles for one workload: Kueue may decide about the workloads before it in its queue
// first, one in each cycle.
const maxCycles = 1000

// queues is Kueue's half of a forecast: the quota engine, with the state after all decisions so far.
type queues struct {
	engine    *quota.Engine
	objects   *Queues
	snapshot  *Snapshot
	beside    []*corev1.Pod    // the pods of planned jobs that go through no queue
	classes   map[string]int32 // values of WorkloadPriorityClasses
	flavors   map[kueue.ResourceFlavorReference]*kueue.ResourceFlavor
	now       time.Time // later than the creation of any workload
	submitted int       // number of planned workloads that the engine has received
	known     map[types.NamespacedName]*kueue.Workload
	planned   map[types.NamespacedName]plannedPart
	fair      bool // Kueue is configured for fair sharing
	// undecided is the engine before the queues admit others after the planned jobs; nil if no planned part waits.
	undecided *quota.Engine
	notes     *notes
}

// plannedPart identifies the job and the part that a planned workload belongs to.
type plannedPart struct {
	number int // of the job
	job    Job
	part   Part
}

// admission is a queue's decision about a part.
type admission struct {
	queue    string // the ClusterQueue; "" where there is none
	admitted bool
	// Of an admitted part: how many of its pods start, the flavors of their quota and the admission checks to wait for.
	count map[string]int32    // by pod set
	given map[string][]string // flavors by pod set
	// domains has, by pod set, the node labels of each pod's domain; none where Kueue does not place them.
	domains map[string]domains
	sets    []podSet
	flavors []string // of all sets
	checks  []string
	borrows bool
	evicted []evictedWorkload
	// others are evicted for workloads that were ahead of it.
	others          []evictedWorkload
	why             string // the reason of a part that waits
	ahead           []types.NamespacedName
	neverAdmissible bool // not even an empty queue would admit it
	outside         bool // it waits, and not in the queue: it has no Workload
}

// evictedWorkload is a workload that loses its quota.
type evictedWorkload struct {
	name     types.NamespacedName
	priority int32
	reason   string // of the condition Preempted
	// ahead is the number of workloads before it when it is queued again.
	ahead int
}

// podSet is a set of pods of a part that Kueue does not distinguish, and what admission adds to them.
type podSet struct {
	name string
	pods []int // their indices in the part
}

func newQueues(s *Snapshot, n *notes) *queues {
	if s.Queues == nil {
		return nil
	}
	config := s.Queues.engineConfig()
	q := &queues{
		engine: quota.New(config), fair: config.FairSharing != nil, objects: s.Queues, snapshot: s, classes: map[string]int32{}, now: s.AsOf, notes: n,
		flavors: map[kueue.ResourceFlavorReference]*kueue.ResourceFlavor{},
		known:   map[types.NamespacedName]*kueue.Workload{}, planned: map[types.NamespacedName]plannedPart{},
	}
	for _, flavor := range s.Queues.Flavors {
		q.engine.SetFlavor(flavor.Name, flavor.Spec)
		q.flavors[kueue.ResourceFlavorReference(flavor.Name)] = flavor
	}
	q.setTopologies(s)
	for _, namespace := range s.Namespaces {
		q.engine.SetNamespace(namespace.Name, namespace.Labels)
	}
	for _, check := range s.Queues.AdmissionChecks {
		q.engine.SetAdmissionCheck(check.Name, meta.IsStatusConditionTrue(check.Status.Conditions, kueue.AdmissionCheckActive))
	}
	for _, cohort := range s.Queues.Cohorts {
		q.engine.SetCohort(cohort.Name, cohort.Spec)
	}
	for _, queue := range s.Queues.ClusterQueues {
		if err := q.engine.SetClusterQueue(queue.Name, queue.Spec); err != nil {
			n.add(InvalidQueue, "ClusterQueue "+queue.Name, "%v; it counts as missing", err)
		}
	}
	for _, queue := range s.Queues.LocalQueues {
		q.engine.SetLocalQueue(types.NamespacedName{Namespace: queue.Namespace, Name: queue.Name}, queue.Spec)
	}
	for _, class := range s.Queues.PriorityClasses {
		q.classes[class.Name] = class.Value
	}
	for _, w := range s.Queues.Workloads {
		workload := quota.FromObject(w)
		if workload.Finished {
			continue
		}
		q.engine.SetWorkload(workload)
		q.known[workload.NamespacedName] = w
		if w.CreationTimestamp.After(q.now) {
			q.now = w.CreationTimestamp.Time
		}
	}
	return q
}

// forget removes the workloads of Jobs that are gone when the planned job starts.
func (q *queues) forget(gone func(*kueue.Workload) bool) {
	for name, w := range q.known {
		if gone(w) {
			q.engine.DeleteWorkload(name)
			delete(q.known, name)
		}
	}
}

// admit submits a part to its queue, and keeps the decision. Without its class Kueue makes no Workload.
func (q *queues) admit(number int, job Job, part Part, priority int32) admission {
	if _, known := q.classes[part.Class]; part.Class != "" && !known && !q.snapshot.mayHave(QueueClasses) {
		return admission{outside: true, why: fmt.Sprintf("WorkloadPriorityClass %s does not exist, and without it Kueue creates no Workload", part.Class)}
	}
	w, sets := q.workload(job, part, priority)
	q.planned[w.NamespacedName] = plannedPart{number, job, part}
	a := admission{sets: sets, count: map[string]int32{}, given: map[string][]string{}, domains: map[string]domains{}}
	q.engine.SetWorkload(w)
	q.cycle(func(d quota.Decision) (enough bool) {
		if d.Workload == w.NamespacedName {
			a.take(d)
		}
		a.evict(q, d, d.Workload == w.NamespacedName)
		return a.admitted
	})
	if !a.admitted {
		d := q.engine.Why(w.NamespacedName)
		a.queue, a.why = d.ClusterQueue, strings.TrimSuffix(d.Message, ".")
		if d.Cause == quota.Behind || d.Cause == quota.Alike {
			a.why = "those before it find no quota either"
		}
		a.neverAdmissible = d.Cause == quota.NoFit && q.neverAdmissible(w)
		if place, pending := q.engine.Position(w.NamespacedName); pending {
			a.ahead = slices.Clone(q.engine.Pending(d.ClusterQueue)[:place])
		}
	}
	for i := range a.evicted {
		a.evicted[i].ahead, _ = q.engine.Position(a.evicted[i].name)
	}
	q.noteUnmodelled(w.NamespacedName, part, a)
	return a
}

// cycle runs scheduling cycles until no workload is left to decide about, or until a caller's function ends it.
func (q *queues) cycle(see func(quota.Decision) (enough bool)) {
	now := q.now
	for range maxCycles {
		result := q.engine.Cycle(now)
		enough := false
		for _, d := range result.Decisions {
			enough = see(d) || enough
		}
		if enough {
			return
		}
		if result.Settled {
			again, more := q.engine.RequeueAt()
			if !more {
				return
			}
			now = again // Kueue offers released quota again a moment later
		}
	}
	q.notes.add(TooManyChoices, "", "the queues need more than %d cycles for the workloads that wait in them, and were not followed to the end", maxCycles)
}

// noteFollowers notes the workloads that the queues admit after all planned jobs: evicted or waiting workloads may get
// the remaining quota. Its decisions are final, so it runs last.
func (q *queues) noteFollowers() {
	for name := range q.planned {
		if _, pending := q.engine.Position(name); pending {
			q.undecided = q.engine.Clone()
			break
		}
	}
	q.cycle(func(d quota.Decision) bool {
		if d.Kind == quota.Admit {
			q.notes.add(OthersAdmitted, "Workload "+d.Workload.String(),
				"workload %s is admitted afterwards, with quota that is left over; the places of its pods are not known",
				shortName(d.Workload.Namespace, d.Workload.Name))
		}
		for _, t := range d.Targets {
			q.engine.Release(t.Workload)
		}
		if d.Kind == quota.Evict {
			q.engine.Release(d.Workload)
		}
		return false
	})
}

// neverAdmissible reports whether a workload would not even be admitted if it were the only one.
func (q *queues) neverAdmissible(w quota.Workload) bool {
	objects := *q.objects
	objects.Workloads = nil
	alone := newQueues(&Snapshot{
		AsOf: q.now, Queues: &objects, Namespaces: q.snapshot.Namespaces, Nodes: q.snapshot.Nodes, Pods: q.snapshot.Pods,
	}, &notes{})
	answer := alone.engine.WhatIf(w, q.now)
	return answer.Kind == quota.Wait && answer.Cause == quota.NoFit
}

// take applies a decision about the part itself.
func (a *admission) take(d quota.Decision) {
	if d.Kind != quota.Admit {
		return
	}
	a.admitted, a.queue, a.checks, a.borrows = true, d.ClusterQueue, d.Checks, d.Borrows > 0
	for _, set := range d.Admission.PodSetAssignments {
		a.count[string(set.Name)] = *set.Count
		var given []string
		for _, flavor := range set.Flavors {
			if flavor != "" { // of a resource of which nothing is requested, and which the queue does not cover
				given = append(given, string(flavor))
			}
		}
		slices.Sort(given)
		given = slices.Compact(given)
		a.given[string(set.Name)] = given
		a.domains[string(set.Name)] = domainsOf(set.TopologyAssignment)
		a.flavors = append(a.flavors, given...)
	}
	slices.Sort(a.flavors)
	a.flavors = slices.Compact(a.flavors)
}

// evict notes which workloads lose quota, and releases it immediately: an evicted workload stops, and no other decision
// happens in between.
func (a *admission) evict(q *queues, d quota.Decision, ours bool) {
	to := &a.others
	if ours {
		to = &a.evicted
	}
	if d.Kind == quota.Evict {
		*to = append(*to, evictedWorkload{name: d.Workload, reason: d.Reason})
		q.engine.Release(d.Workload)
	}
	for _, t := range d.Targets {
		if !t.Ongoing {
			*to = append(*to, evictedWorkload{name: t.Workload, priority: t.Priority, reason: t.Reason})
		}
		q.engine.Release(t.Workload)
	}
	if d.Kind == quota.Admit && !ours {
		q.notes.add(OthersAdmitted, "Workload "+d.Workload.String(), "workload %s is ahead and about to be admitted; the places of its pods are not known", shortName(d.Workload.Namespace, d.Workload.Name))
	}
}

// podsAreWorkloads are the nouns of jobs whose pods Kueue admits separately: one by one, or as a group.
var podsAreWorkloads = map[string]bool{
	aTrainingJob: true, "job": true, "pod": true, "pod group": true, "Deployment": true, "ReplicaSet": true,
	"StatefulSet": true, "LeaderWorkerSet": true,
}

// holdsUntilStopped reports whether a workload releases its quota only after its pods have stopped, as a Job does. A
// pod that is a workload, or belongs to a pod group, releases it when it begins to stop.
func (q *queues) holdsUntilStopped(name types.NamespacedName) bool {
	if p, ok := q.planned[name]; ok {
		return !podsAreWorkloads[p.job.Noun]
	}
	w := q.known[name]
	return w != nil && !ownedByPods(w)
}

// workload is a part as Kueue would see it: the youngest of all workloads.
func (q *queues) workload(job Job, part Part, priority int32) (quota.Workload, []podSet) {
	q.submitted++
	name := job.Name
	if len(job.Stages) > 1 || len(job.Stages) == 1 && len(job.Stages[0]) > 1 {
		name += "-" + strings.ReplaceAll(part.Pods[0].Role, " ", "-")
	}
	if part.Class != "" {
		if value, found := q.classes[part.Class]; found {
			priority = value
		} else {
			q.notes.add(MissingClass, "WorkloadPriorityClass "+part.Class, "WorkloadPriorityClass %s is not known: %s counts with the priority of its pods", part.Class, job)
		}
	}
	w := quota.Workload{
		// The blanks keep the name apart from those of existing workloads: names of objects have no blanks.
		NamespacedName: types.NamespacedName{Namespace: job.Namespace, Name: name + " (planned)"},
		UID:            fmt.Sprintf("~%09d", q.submitted), // sorts after every other where UIDs decide
		Created:        q.now.Add(time.Duration(q.submitted) * time.Second),
		Priority:       priority, Queue: part.Queue, Gated: part.GatedBy,
	}
	sets := part.sets()
	for _, set := range sets {
		pod := &part.Pods[set.pods[0]].Spec
		requested := quota.PodSet{
			Name: set.name, Count: int32(len(set.pods)), //nolint:gosec // pods are in memory
			Requests: part.Pods[set.pods[0]].quotaRequests(), NodeSelector: pod.NodeSelector,
			NodeAffinity: scheduler.RequiredNodeAffinity(pod.Affinity), Tolerations: pod.Tolerations,
		}
		q.requestTopology(&requested, part.Pods[set.pods[0]].Annotations, job)
		if part.Least > 0 {
			requested.MinCount = new(int32(part.Least)) //nolint:gosec // a number of pods
		}
		w.PodSets = append(w.PodSets, requested)
	}
	return w, sets
}

// quotaRequests is what Kueue counts for a pod.
func (p Pod) quotaRequests() corev1.ResourceList {
	if p.Uncounted == "" {
		return scheduler.PodRequests(&p.Spec)
	}
	spec := p.Spec
	spec.InitContainers = slices.DeleteFunc(slices.Clone(spec.InitContainers), func(c corev1.Container) bool { return c.Name == p.Uncounted })
	return scheduler.PodRequests(&spec)
}

// sets groups a part's pods by their pod set, in the order of the Workload's pod sets, or by the word of their role: a
// master and its minimum workers are two sets, the pods of a task are one.
func (p Part) sets() []podSet {
	byName := map[string]*podSet{}
	var named []string
	for i, pod := range p.Pods {
		name, _, _ := strings.Cut(pod.Role, " ")
		switch {
		case pod.Set != "":
			name = pod.Set
		case name == "the" || name == "pod":
			name = string(kueue.DefaultPodSetName) // of a Job
		}
		if byName[name] == nil {
			byName[name] = &podSet{name: name}
			if pod.Set != "" {
				named = append(named, name)
			}
		}
		byName[name].pods = append(byName[name].pods, i)
	}
	sets := make([]podSet, 0, len(byName))
	if len(p.Sets) > 0 {
		named = slices.DeleteFunc(slices.Clone(p.Sets), func(name string) bool { return byName[name] == nil })
	}
	if len(named) < len(byName) {
		named = slices.Sorted(maps.Keys(byName))
	}
	for _, name := range named {
		sets = append(sets, *byName[name])
	}
	return sets
}

// started returns the pods of an admitted part that its admission lets start: as many as were admitted, with the node
// labels and tolerations of their flavors.
func (q *queues) started(part Part, a admission) []Pod {
	var pods []Pod
	for _, set := range a.sets {
		for i, index := range set.pods {
			if int32(i) >= a.count[set.name] { //nolint:gosec // pods are in memory
				break
			}
			pod := part.Pods[index]
			pod.Pod = pod.DeepCopy()
			for _, name := range a.given[set.name] {
				if flavor := q.flavors[kueue.ResourceFlavorReference(name)]; flavor != nil {
					admitTo(&pod.Spec, flavor)
				}
			}
			a.domains[set.name].put(&pod.Spec, i)
			pods = append(pods, pod)
		}
	}
	slices.SortStableFunc(pods, func(a, b Pod) int { return cmp.Compare(part.index(a.Role), part.index(b.Role)) })
	return pods
}

func (p Part) index(role string) int {
	return slices.IndexFunc(p.Pods, func(pod Pod) bool { return pod.Role == role })
}

func admitTo(pod *corev1.PodSpec, flavor *kueue.ResourceFlavor) {
	if len(flavor.Spec.NodeLabels) > 0 && pod.NodeSelector == nil {
		pod.NodeSelector = map[string]string{}
	}
	maps.Copy(pod.NodeSelector, flavor.Spec.NodeLabels)
	pod.Tolerations = append(slices.Clip(pod.Tolerations), flavor.Spec.Tolerations...)
}
