package differential

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/placement"
)

// mostSets bounds the number of sets of victims that an option of the engine may represent.
const mostSets = 10_000

// An Engine is the engine with a snapshot, and what has happened to it since.
type Engine struct {
	cluster *placement.Cluster
	pods    map[string]*placement.Pod
	ending  map[string]bool // the pods that are being deleted
}

// NewEngine loads a snapshot.
func NewEngine(s *Snapshot) *Engine {
	e := &Engine{
		cluster: placement.New(placement.Snapshot{
			Nodes: s.Nodes, Pods: s.Pods, PDBs: s.Budgets, Namespaces: s.Namespaces, PriorityClasses: s.Classes,
			Services: s.Services, ReplicaSets: s.ReplicaSets, StatefulSets: s.StatefulSets,
			ReplicationControllers: s.ReplicationControllers, Version: SchedulerVersion,
			Storage: s.Storage.forEngine(), Devices: s.Devices.forEngine(),
		}),
		pods: map[string]*placement.Pod{}, ending: map[string]bool{},
	}
	for _, pod := range e.cluster.Pending() {
		e.pods[pod.String()] = pod
	}
	for _, pod := range s.Pods {
		e.ending[nameOf(pod).String()] = pod.DeletionTimestamp != nil
	}
	for _, node := range s.Nodes {
		for _, pod := range e.cluster.PodsOn(node.Name) {
			e.pods[pod.String()] = pod
		}
	}
	return e
}

// Decide has the engine decide on a pending pod. Where it has a choice, the decision is one of its equals.
func (e *Engine) Decide(pod string) (Decision, error) {
	subject := e.pods[pod]
	if subject == nil {
		return Decision{}, fmt.Errorf("the engine does not know pod %s", pod)
	}
	prospect := e.cluster.Alternatives(subject)
	if len(prospect.Approximate) > 0 && !prospect.Sampled && !usesClaims(subject.Object()) {
		return Decision{}, fmt.Errorf("the engine calls its answer approximate: %v", prospect.Approximate)
	}
	message := e.cluster.Explain(subject).Message // before Schedule, which may end the pod's nomination
	decision := e.translate(e.cluster.Schedule(subject))
	decision.Message = message
	var equals []Decision
	for _, option := range prospect.Options {
		if prospect.Kind == placement.Bound {
			equals = append(equals, Decision{Node: option.Node})
			continue
		}
		for _, victims := range sets(option.Victims) {
			equals = append(equals, Decision{Nominated: option.Node, Victims: e.evicted(victims)})
		}
		if len(equals) > mostSets {
			return Decision{}, fmt.Errorf("the engine has more than %d answers", mostSets)
		}
	}
	slices.SortFunc(equals, compareDecisions)
	equals = slices.CompactFunc(equals, sameDecision)
	if len(equals) > 0 && !contains(equals, decision) {
		return Decision{}, fmt.Errorf("the engine decides what it does not call possible: %s, not %v", decision, equals)
	}
	if len(equals) > 1 {
		decision.Equals = equals
	}
	decision.Sampled, decision.Approximate = prospect.Sampled, len(prospect.Approximate) > 0
	return decision, nil
}

// usesClaims reports whether a pod has volumes or devices, some of which the engine calls approximate.
func usesClaims(pod *corev1.Pod) bool {
	_, extended := pod.Spec.Containers[0].Resources.Requests[mapped]
	return extended || len(pod.Spec.Volumes) > 0 || len(pod.Spec.ResourceClaims) > 0
}

// Apply carries out what was decided on a pod, by whomever. started is when the pod starts, if it was bound.
func (e *Engine) Apply(pod string, d Decision, started time.Time) {
	subject := e.pods[pod]
	switch {
	case d.Node != "":
		running := *subject
		running.Started = started
		e.cluster.Denominate(subject)
		e.cluster.AddPod(&running, d.Node)
		e.pods[pod] = &running
	case d.Nominated != "":
		var victims []*placement.Pod
		for _, name := range d.Victims {
			victims = append(victims, e.pods[name])
			e.ending[name] = true
		}
		e.cluster.Preempt(subject, d.Nominated, victims)
	}
}

func (e *Engine) translate(d placement.Decision) Decision {
	switch d.Kind {
	case placement.Bound:
		return Decision{Node: d.Node}
	case placement.Preempts:
		return Decision{Nominated: d.Node, Victims: e.evicted(d.Victims)}
	}
	return Decision{}
}

// evicted are the names of those of the victims that are not being deleted already.
func (e *Engine) evicted(victims []*placement.Pod) []string {
	var names []string
	for _, victim := range victims {
		if !e.ending[victim.String()] {
			names = append(names, victim.String())
		}
	}
	slices.Sort(names)
	return names
}

// sets are the sets of pods that victims represent: each victim may be replaced by another that is equal to it, and
// none is taken twice.
func sets(victims []placement.Victim) [][]*placement.Pod {
	if len(victims) == 0 {
		return [][]*placement.Pod{nil}
	}
	last := len(victims) - 1
	var all [][]*placement.Pod
	for _, rest := range sets(victims[:last]) {
		for _, pod := range append([]*placement.Pod{victims[last].Pod}, victims[last].Or...) {
			if !slices.Contains(rest, pod) {
				all = append(all, append(slices.Clone(rest), pod))
			}
		}
	}
	return all
}
