package differential

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// inSequence are the families of which an engine decides every pod on the state that the pods before have left.
var inSequence = []string{"gangs", "gangs in large clusters", "preemption in large clusters", "sequence", "long sequence"}

// The engine never sees another snapshot than the first: it carries out what it decides, as kube-scheduler does in its
// cache. In a large cluster its search begins where the last one ended, so that it must look at the same nodes.
func TestAGangIsDecidedPodByPodAsKubeSchedulersCacheDoes(t *testing.T) {
	first, count := seeds(80, 10_000)
	Each(first, count, atATime(), func(seed uint64) {
		family := inSequence[seed%uint64(len(inSequence))]
		if *oneFamily != "" {
			family = *oneFamily
		}
		snapshot := GenerateOf(seed, family)
		snapshot.Budgets = nil // the engine lets them shrink with every victim, as a controller does that is not here
		steps, after, err := DecideInProcess(t.Context(), snapshot)
		if err != nil {
			t.Errorf("seed %d, family %q: %v", seed, family, err)
			return
		}
		engine := NewEngine(ordered(snapshot, steps[0].Order))
		for i, step := range steps {
			outcome := after
			if i+1 < len(steps) {
				outcome = steps[i+1].Before
			}
			err := sameAsScheduler(engine, step)
			if err == nil {
				err = carryOut(engine, step, outcome)
			}
			if err != nil {
				t.Errorf("seed %d, family %q, step %d, pod %s: %v\nreplay with: go -C e2e test ./differential -run %s -seed %d -family %q\n%s",
					seed, family, i, nameOf(step.Pod), err, t.Name(), seed, family, step.Before)
				return
			}
		}
	})
}

// ordered is a snapshot with its nodes in an order.
func ordered(s *Snapshot, names []string) *Snapshot {
	s = s.Clone()
	slices.SortFunc(s.Nodes, func(a, b *corev1.Node) int { return slices.Index(names, a.Name) - slices.Index(names, b.Name) })
	return s
}

// tries is how often the engine decides, with other choices among equals.
const tries = 30

// sameAsScheduler compares the decisions between which the engine and the scheduler have no preference, on the nodes
// that both look at, and the victims on each of the nodes that the scheduler compared.
//
// Where more than a hundred nodes come into question for a preemption, kube-scheduler compares a part of them that
// depends on the order of a map (NodeToStatus.ForEachExplicitNode): its decision must then be one that the engine calls
// possible. So must it where the order of its cache chooses between a node's pods.
func sameAsScheduler(e *Engine, step Step) error {
	pod := nameOf(step.Pod).String()
	if err := sameCandidates(e, step); err != nil {
		return err
	}
	problem := e.draw(step)
	possible, err := e.Decide(pod) // the next search begins where this one ends
	switch {
	case err != nil:
		return err
	case step.Decision.Node == "" && (possible.Sampled || slices.ContainsFunc(step.Order, func(node string) bool { return !inStrictOrder(step.Before, node) })):
		if missing(possible.possible(), []Decision{step.Decision}) {
			return fmt.Errorf("kube-scheduler: %s\nengine: %s", step.Decision.withEquals(), possible.withEquals())
		}
		return nil
	}
	return problem
}

// draw compares what the engine decides with different choices among equals.
func (e *Engine) draw(step Step) error {
	random := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // repeatable, and no secret
	theirs := step.Decision.possible()
	on := func(d Decision) string { return d.Node + d.Nominated }
	nodes := map[string]bool{}
	for _, d := range theirs {
		nodes[on(d)] = true
	}
	seen := false
	for range tries {
		clone := e.cluster.Clone()
		clone.TieBreak = random.IntN
		decided := clone.Schedule(e.pods[nameOf(step.Pod).String()])
		ours := e.translate(decided)
		if !nodes[on(ours)] || on(ours) != "" && decided.Equal != len(nodes) {
			return fmt.Errorf("kube-scheduler: %s\nengine:         %s, one of %d", step.Decision.withEquals(), ours, decided.Equal)
		}
		seen = seen || contains(theirs, ours)
	}
	if !seen {
		return fmt.Errorf("kube-scheduler: %s; the engine evicts others", step.Decision.withEquals())
	}
	return nil
}

// sameCandidates compares the victims node by node, where nothing but priority and start orders a node's pods.
func sameCandidates(e *Engine, step Step) error {
	if len(step.Candidates) == 0 {
		return nil
	}
	for _, node := range e.cluster.Explain(e.pods[nameOf(step.Pod).String()]).Nodes {
		theirs, compared := step.Candidates[node.Node]
		if ours := e.evicted(node.Victims); compared && !slices.Equal(ours, theirs) && inStrictOrder(step.Before, node.Node) {
			return fmt.Errorf("on %s kube-scheduler evicts %v, the engine %v", node.Node, theirs, ours)
		}
	}
	return nil
}

// inStrictOrder reports whether no two pods on a node have the same priority and start.
func inStrictOrder(s *Snapshot, node string) bool {
	seen := map[string]bool{}
	for _, pod := range s.Pods {
		if pod.Spec.NodeName != node || finished(pod) {
			continue
		}
		key := fmt.Sprint(*pod.Spec.Priority, pod.Status.StartTime)
		if seen[key] {
			return false
		}
		seen[key] = true
	}
	return true
}
