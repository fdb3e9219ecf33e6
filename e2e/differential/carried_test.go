package differential

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// rounds is how often victims end and the scheduler decides again about pending pods.
const rounds = 3

// The simulator and the forecast do not load a snapshot for every decision: they apply decisions in the engine and
// continue. The next decision must be the same as on a snapshot of the result.
func TestAnEngineThatCarriedDecisionsOutDecidesAsOneThatWasLoadedWithTheirOutcome(t *testing.T) {
	first, count := seeds(100, 5000)
	Each(first, count, atATime(), func(seed uint64) {
		snapshot, family := Generate(seed)
		snapshot.Budgets = nil // the engine lets them shrink with every victim, as a controller does that is not here
		engine := NewEngine(snapshot)
		for round := range rounds {
			steps, after, err := DecideInProcess(t.Context(), snapshot)
			if err != nil {
				t.Errorf("seed %d, family %q: %v", seed, family, err)
				return
			}
			for i, step := range steps {
				outcome := after
				if i+1 < len(steps) {
					outcome = steps[i+1].Before
				}
				if err := carry(engine, step, outcome); err != nil {
					t.Errorf("seed %d, family %q, round %d, step %d, pod %s: %v\nreplay with: go -C e2e test ./differential -run %s -seed %d\n%s",
						seed, family, round, i, nameOf(step.Pod), err, t.Name(), seed, step.Before)
					return
				}
			}
			if snapshot = end(engine, steps, after); len(snapshot.Pending()) == 0 {
				return
			}
		}
	})
}

// carry compares the engine's decision with that of one that is newly loaded, and carries out what the scheduler did.
func carry(engine *Engine, step Step, after *Snapshot) error {
	pod := nameOf(step.Pod).String()
	carried, err := engine.Decide(pod)
	if err != nil {
		return err
	}
	loaded, err := NewEngine(step.Before).Decide(pod)
	if err != nil {
		return err
	}
	if !slices.EqualFunc(carried.possible(), loaded.possible(), sameDecision) || carried.Message != loaded.Message {
		return fmt.Errorf("carried on: %s\nnewly loaded: %s", carried.withEquals(), loaded.withEquals())
	}
	return carryOut(engine, step, after)
}

// carryOut does in the engine what the scheduler did. The engine's own search moves on as well.
func carryOut(engine *Engine, step Step, after *Snapshot) error {
	pod := nameOf(step.Pod).String()
	var started time.Time
	if now := after.pod(pod); now.Status.StartTime != nil {
		started = now.Status.StartTime.Time
	}
	engine.Apply(pod, step.Decision, started)
	if step.Decision.Node == "" && step.Decision.Nominated == "" && after.pod(pod).Status.NominatedNodeName == "" {
		engine.cluster.Denominate(engine.pods[pod]) // which its owner does when nothing helps any more
	}
	for _, waiting := range after.Pending() {
		if has := engine.cluster.Nominated(engine.pods[nameOf(waiting).String()]); has != waiting.Status.NominatedNodeName {
			return fmt.Errorf("pod %s is then nominated to %q, in the engine to %q", nameOf(waiting), waiting.Status.NominatedNodeName, has)
		}
	}
	return nil
}

// end ends the victims of all steps, in the engine and in the snapshot.
func end(engine *Engine, steps []Step, after *Snapshot) *Snapshot {
	after = after.Clone()
	for _, step := range steps {
		for _, victim := range step.Decision.Victims {
			engine.cluster.RemovePod(engine.pods[victim], step.Decision.Nominated)
			after.Pods = slices.DeleteFunc(after.Pods, func(p *corev1.Pod) bool { return nameOf(p).String() == victim })
		}
	}
	return after
}
