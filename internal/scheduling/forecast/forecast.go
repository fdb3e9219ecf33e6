// Package forecast says, before a job is made, what would become of it and of others: whether its queue would admit it,
// where its pods would start and when, whom they would evict and what becomes of those. It joins the two halves of the
// engine, quota (Kueue) and placement (kube-scheduler), over one snapshot of a cluster.
//
// It is pure: what a snapshot holds and which jobs are planned comes in, an answer goes out, as data and as text. It
// promises that what then happens is one of the alternatives that the answer names, as long as the cluster is as it was
// and nothing is named as approximate: where kube-scheduler chooses at random between equals, all of them are named.
// It leaves to others how a snapshot is read (package snapshot) and what is made of an answer (package provider).
package forecast

import (
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/kueue"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduling/placement"
)

// choiceBudget is in how many ways equal choices are followed: enough for every small tie, and for the first of a long
// row of them. Every run works on a copy of a large cluster, so that larger ones get fewer.
func choiceBudget(nodes int) int {
	switch {
	case nodes <= 100:
		return 64
	case nodes <= 1000:
		return 8
	default:
		return 1
	}
}

// Make says what becomes of a job on a cluster. The jobs before it are planned as well, and come first.
func Make(s *Snapshot, before []Job, job Job) Answer {
	a := decide(s, before, job)
	if a.Outcome == Pends && len(s.Nodes) <= maxEstimateNodes {
		a.Estimate = estimate(s, before, job)
		for _, name := range unknownEnds(s) {
			if !slices.Contains(a.Asks, name) {
				a.Asks = append(a.Asks, name)
			}
		}
	}
	return a
}

// decide is an answer without a time.
func decide(s *Snapshot, before []Job, job Job) Answer {
	f := newForecast(s, before, job)
	f.ask()
	first := &run{cluster: f.cluster, budget: choiceBudget(len(s.Nodes)), fates: map[*placement.Pod]*fate{}, lost: f.stopping, competitors: f.competitors()}
	runs := []*run{first}
	for _, step := range f.steps {
		var next []*run
		for _, r := range runs {
			next = append(next, f.take(r, step)...)
		}
		runs = next
	}
	return f.conclude(runs)
}

// forecast is the making of one answer.
type forecast struct {
	snapshot *Snapshot
	jobs     []Job // those before it, and the job itself
	notes    *notes
	queues   *queues
	pods     []*corev1.Pod // those that are not gone when the jobs start
	cluster  *placement.Cluster
	at       map[types.UID]located // where the cluster's pods are
	stopping []victim              // pods that are being deleted
	planned  map[*placement.Pod]planned
	staff    map[types.NamespacedName]staff
	steps    []step
}

// located is a pod of the cluster on its node.
type located struct {
	pod  *placement.Pod
	node string
}

// planned is a planned pod, and which job and part it is of.
type planned struct {
	job int
	Pod
}

func newForecast(s *Snapshot, before []Job, job Job) *forecast {
	f := &forecast{
		snapshot: s, jobs: append(slices.Clip(before), job), notes: &notes{}, pods: s.Pods,
		at: map[types.UID]located{}, planned: map[*placement.Pod]planned{},
	}
	gone := f.gone()
	if len(gone) > 0 {
		f.pods = slices.DeleteFunc(slices.Clone(s.Pods), func(pod *corev1.Pod) bool { return gone[pod.UID] })
	}
	f.cluster = placement.New(placement.Snapshot{
		Nodes: s.Nodes, Pods: f.pods, PDBs: s.Budgets, Namespaces: s.Namespaces, PriorityClasses: s.PriorityClasses,
	})
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
		f.queues.forget(func(w *kueue.Workload) bool {
			return slices.ContainsFunc(w.OwnerReferences, func(o metav1.OwnerReference) bool {
				return gone[o.UID] || o.Kind == aJob && f.makes(owner{kind: aJob, namespace: w.Namespace, name: o.Name})
			})
		})
	}
	return f
}

// gone are the pods of jobs that planned ones take the place of.
func (f *forecast) gone() map[types.UID]bool {
	gone := map[types.UID]bool{}
	for _, pod := range f.snapshot.Pods {
		if o := ownerOf(pod); o.kind != "" && f.makes(o) {
			gone[pod.UID] = true
		}
	}
	return gone
}

// makes says whether a planned job takes the place of an owner of pods. Training jobs, tasks and Jobs share their names.
func (f *forecast) makes(o owner) bool {
	return (o.kind == aTrainingJob || o.kind == aTask || o.kind == aJob) &&
		slices.ContainsFunc(f.jobs, func(job Job) bool { return !job.Grows && job.Key() == o.key() })
}

const (
	noJob = -1
	// maxCompetitors bounds how many pods that wait already are tried whenever there is room.
	maxCompetitors = 200
)

// competitors are the pods of the cluster that wait for room and are as important as the planned ones: they come first.
func (f *forecast) competitors() []*placement.Pod {
	least := int32(math.MaxInt32)
	for pod := range f.planned {
		least = min(least, pod.Priority)
	}
	var found []*placement.Pod
	for _, pod := range f.cluster.Pending() {
		o := pod.Object()
		if pod.Priority >= least && len(o.Spec.SchedulingGates) == 0 && o.DeletionTimestamp == nil {
			found = append(found, pod)
		}
	}
	if len(found) > maxCompetitors {
		f.notes.add("%d pods that are as important wait for room; only the first %d of them are looked at", len(found), maxCompetitors)
		found = found[:maxCompetitors]
	}
	return found
}

// ask gives every part that has a queue to it, and makes the steps. What is made by a master that its queue does not
// let start never comes to its own queue.
func (f *forecast) ask() {
	for number, job := range f.jobs {
		starts := true
		for _, stage := range job.Stages {
			step := step{job: number}
			for _, part := range stage {
				ready := part.Pods
				if !starts {
					ready = nil
				} else if part.Queue != "" {
					ready = f.admit(&step, job, part)
				}
				for _, pod := range part.Pods {
					at := slices.IndexFunc(ready, func(r Pod) bool { return r.Role == pod.Role })
					if at < 0 {
						placed := f.enter(number, pod)
						step.held, step.order = append(step.held, placed), append(step.order, placed)
						continue
					}
					placed := f.enter(number, ready[at])
					step.pods, step.order = append(step.pods, placed), append(step.order, placed)
				}
				starts = starts && (len(ready) > 0 || part.optional())
			}
			f.steps = append(f.steps, step)
		}
	}
}

// admit asks a part's queue, and returns the pods that it lets start.
func (f *forecast) admit(step *step, job Job, part Part) []Pod {
	if f.queues == nil {
		step.rulings = append(step.rulings, ruling{part, admission{why: "the cluster has no queues"}})
		return nil
	}
	a := f.queues.admit(step.job, job, part, f.priorityOf(part))
	step.rulings = append(step.rulings, ruling{part, a})
	if !a.admitted || len(a.checks) > 0 {
		return nil
	}
	return f.queues.started(part, a)
}

// enter makes a planned pod ready for scheduling, as admission would have it.
func (f *forecast) enter(job int, pod Pod) *placement.Pod {
	object := *pod.Pod
	object.Spec.Priority, object.Spec.PreemptionPolicy = f.priority(&object.Spec)
	if object.Spec.RuntimeClassName != nil && len(object.Spec.Overhead) == 0 {
		f.notes.add("RuntimeClass %s may add an overhead to what %s of %s asks for", *object.Spec.RuntimeClassName, pod.Role, f.jobs[job])
	}
	placed := f.cluster.Pod(&object)
	f.planned[placed] = planned{job, pod}
	return placed
}

// priority is what the API server gives to a pod: its class's, else that of the default class.
func (f *forecast) priority(spec *corev1.PodSpec) (*int32, *corev1.PreemptionPolicy) {
	if spec.Priority != nil {
		return spec.Priority, spec.PreemptionPolicy
	}
	var standard *schedulingv1.PriorityClass
	for _, class := range f.snapshot.PriorityClasses {
		switch {
		case spec.PriorityClassName != "" && class.Name == spec.PriorityClassName:
			return &class.Value, class.PreemptionPolicy
		case spec.PriorityClassName == "" && class.GlobalDefault && (standard == nil || class.Value < standard.Value):
			standard = class
		}
	}
	if standard != nil {
		return &standard.Value, standard.PreemptionPolicy
	}
	if name := spec.PriorityClassName; name != "" && !strings.HasPrefix(name, "system-") {
		f.notes.add("PriorityClass %s is not there: its pods count with priority 0, and could not be made", name)
	}
	return new(int32), nil
}

// priorityOf is a part's, where no class of its queue says it: that of its first pods.
func (f *forecast) priorityOf(part Part) int32 {
	if len(part.Pods) == 0 {
		return 0
	}
	value, _ := f.priority(&part.Pods[0].Spec)
	return *value
}
