package differential

import (
	"fmt"
	"slices"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduling/placement"
)

// DecideByEngine has the engine decide on one pending pod of a snapshot. Where it has a choice, the decision is one of its
// equals.
func DecideByEngine(s *Snapshot, pod string) (Decision, error) {
	cluster, subject, err := load(s, pod)
	if err != nil {
		return Decision{}, err
	}
	var all []Decision
	first := Decision{}
	for path := (&script{}); ; {
		trial := cluster.Clone()
		trial.Break = path.choose
		decision := translate(trial.Schedule(subject))
		if all == nil {
			first = decision
		}
		if !slices.ContainsFunc(all, func(d Decision) bool { return compareDecisions(d, decision) == 0 }) {
			all = append(all, decision)
		}
		if !path.next() {
			break
		}
	}
	first.Message = cluster.Explain(subject).Message
	if len(all) > 1 {
		slices.SortFunc(all, compareDecisions)
		first.Equals = all
	}
	return first, nil
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
		decision := Decision{Nominated: d.Node}
		for _, victim := range d.Victims {
			if victim.Object().DeletionTimestamp == nil {
				decision.Victims = append(decision.Victims, victim.String())
			}
		}
		slices.Sort(decision.Victims)
		return decision
	}
	return Decision{}
}

// script goes through all ways of choosing, like an odometer.
type script struct {
	choices, limits []int
	at              int
}

func (s *script) choose(n int) int {
	if s.at == len(s.choices) {
		s.choices, s.limits = append(s.choices, 0), append(s.limits, n)
	}
	s.at++
	return s.choices[s.at-1]
}

func (s *script) next() bool {
	for i := len(s.choices) - 1; i >= 0; i-- {
		if s.choices[i]++; s.choices[i] < s.limits[i] {
			s.choices, s.limits, s.at = s.choices[:i+1], s.limits[:i+1], 0
			return true
		}
	}
	return false
}
