package differential

import (
	"fmt"
	"slices"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduling/placement"
)

// mostSets bounds how many sets of victims an option of the engine's may stand for.
const mostSets = 10_000

// DecideByEngine has the engine decide on one pending pod of a snapshot. Where it has a choice, the decision is one of its
// equals.
func DecideByEngine(s *Snapshot, pod string) (Decision, error) {
	cluster, subject, err := load(s, pod)
	if err != nil {
		return Decision{}, err
	}
	decision := translate(cluster.Schedule(subject))
	decision.Message = cluster.Explain(subject).Message
	prospect := cluster.Alternatives(subject)
	if len(prospect.Approximate) > 0 {
		return Decision{}, fmt.Errorf("the engine calls its answer approximate: %v", prospect.Approximate)
	}
	var equals []Decision
	for _, option := range prospect.Options {
		if prospect.Kind == placement.Bound {
			equals = append(equals, Decision{Node: option.Node})
			continue
		}
		for _, victims := range sets(option.Victims) {
			equals = append(equals, Decision{Nominated: option.Node, Victims: evictedByEngine(victims)})
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
	return decision, nil
}

func load(s *Snapshot, pod string) (*placement.Cluster, *placement.Pod, error) {
	cluster := placement.New(placement.Snapshot{
		Nodes: s.Nodes, Pods: s.Pods, PDBs: s.Budgets, Namespaces: s.Namespaces, PriorityClasses: s.Classes,
		Services: s.Services, ReplicaSets: s.ReplicaSets, StatefulSets: s.StatefulSets,
	})
	for _, pending := range cluster.Pending() {
		if pending.String() == pod {
			return cluster, pending, nil
		}
	}
	return nil, nil, fmt.Errorf("the engine does not know that pod %s is pending", pod)
}

func translate(d placement.Decision) Decision {
	switch d.Kind {
	case placement.Bound:
		return Decision{Node: d.Node}
	case placement.Preempts:
		return Decision{Nominated: d.Node, Victims: evictedByEngine(d.Victims)}
	}
	return Decision{}
}

// evictedByEngine are the names of those of the victims that are not being deleted already.
func evictedByEngine(victims []*placement.Pod) []string {
	var names []string
	for _, victim := range victims {
		if victim.Object().DeletionTimestamp == nil {
			names = append(names, victim.String())
		}
	}
	slices.Sort(names)
	return names
}

// sets are the sets of pods that victims stand for: every one may be another that is equal to it, none is taken twice.
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
