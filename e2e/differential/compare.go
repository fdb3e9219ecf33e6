package differential

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// A Difference is a step in which the engine decides otherwise than the real scheduler.
type Difference struct {
	Step   Step
	Engine Decision
}

// orders is in how many orders of the nodes' pods the scheduler decides again if the engine has more answers than it
// had. The chance that one of two equally likely answers is not seen in so many is 2e-18.
const orders = 60

// Compare lets the engine decide on the scheduler's input; nil if it decides the same: if the decisions that are equal
// to the engine are those that are equal to the scheduler. A snapshot does not have the order in which a node's pods
// last changed, which decides among pods of equal priority and start: what the scheduler decides in another order is
// equal too, and Compare adds it to the step's decisions.
//
// If the scheduler considers only some of many nodes, its decision must be among the engine's, unless the engine calls
// them approximate; it must then bind the pod, too. Their messages for a pod that is not bound must be equal too
// (sameMessage).
func Compare(ctx context.Context, step *Step) (*Difference, error) {
	pod := nameOf(step.Pod).String()
	engine, err := NewEngine(step.Before).Decide(pod)
	if err != nil {
		return nil, err
	}
	if engine.Approximate {
		if step.Decision.Node == "" {
			return &Difference{*step, engine}, nil
		}
		return nil, nil
	}
	engines, schedulers := engine.possible(), step.Decision.possible()
	order := rand.New(rand.NewPCG(0, 0))
	for range orders {
		if engine.Sampled || missing(engines, schedulers) || !missing(schedulers, engines) {
			break
		}
		again, err := DecideOneInProcess(ctx, step.Before, pod, order)
		if err != nil {
			return nil, err
		}
		for _, d := range again.Decision.possible() {
			if !contains(schedulers, d) {
				schedulers = append(slices.Clone(schedulers), d)
			}
		}
	}
	if len(schedulers) > 1 {
		slices.SortFunc(schedulers, compareDecisions)
		step.Decision.Equals = schedulers
	}
	if missing(engines, schedulers) || !engine.Sampled && missing(schedulers, engines) || !sameMessage(step, engine.Message) {
		return &Difference{*step, engine}, nil
	}
	return nil, nil
}

// sameMessage reports whether the engine's message for a pod equals the scheduler's. The engine is less exact in one
// case: if a node is reserved for the pod and the pod's affinity does not name that node, the scheduler adds the
// filters that reject the reserved node to the message.
func sameMessage(step *Step, message string) bool {
	return message == step.Decision.Message ||
		step.Pod.Status.NominatedNodeName != "" && strings.Contains(step.Decision.Message, "affinity") && strings.Contains(message, "didn't satisfy plugin(s)")
}

// missing reports whether one of some decisions is not among others.
func missing(among, decisions []Decision) bool {
	return slices.ContainsFunc(decisions, func(d Decision) bool { return !contains(among, d) })
}

func contains(decisions []Decision, one Decision) bool {
	return slices.ContainsFunc(decisions, func(d Decision) bool { return sameDecision(d, one) })
}

// possible is every decision that could as well have been taken.
func (d Decision) possible() []Decision {
	if d.Equals != nil {
		return d.Equals
	}
	return []Decision{d}
}

// smallPatience bounds the search for a small snapshot, which takes a second or two unless there are many nodes.
const smallPatience = 15 * time.Second

// Minimal is the difference on the smallest part of its snapshot that is found to still show one.
func (d *Difference) Minimal(ctx context.Context) *Difference {
	ctx, cancel := context.WithTimeout(ctx, smallPatience)
	defer cancel()
	pod := nameOf(d.Step.Pod).String()
	smallest := d
	Minimal(ctx, d.Step.Before, pod, func(s *Snapshot) bool {
		step, err := DecideOneInProcess(ctx, s, pod, nil)
		if err != nil {
			return false
		}
		difference, err := Compare(ctx, &step)
		if err != nil || difference == nil {
			return false
		}
		smallest = difference
		return true
	})
	return smallest
}

// String is the snapshot and both decisions.
func (d *Difference) String() string {
	return fmt.Sprintf("%sdecision on %s\nkube-scheduler: %s\nengine:         %s",
		d.Step.Before, nameOf(d.Step.Pod), d.Step.Decision.withEquals(), d.Engine.withEquals())
}

func (d Decision) withEquals() string {
	text := d.String()
	if d.Equals != nil {
		var equals []string
		for _, e := range d.Equals {
			equals = append(equals, e.String())
		}
		text += "\n                equal to it: " + strings.Join(equals, "; ")
	}
	return text
}
