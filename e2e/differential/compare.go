package differential

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// A Comparison is a step of the real scheduler with the engine's decision on the same input.
type Comparison struct {
	Step   Step
	Engine Decision
	Result Result
}

// Result is how two decisions compare.
type Result int

const (
	// Equal decisions are the same, without a choice.
	Equal Result = iota
	// Tied decisions were made by chance between several, which are the same for both.
	Tied
	// Approximate is a result for which the engine says itself that it may differ.
	Approximate
	// Different is a result for which the engine decides otherwise.
	Different
)

// orders is in how many orders of the nodes' pods the scheduler decides again if the engine has more answers than it
// had. The chance that one of two equally likely answers is not seen in so many is 2e-18.
const orders = 60

// Compare lets the engine decide on the scheduler's input. The decisions that are equal to the engine must be those that
// are equal to the scheduler. A snapshot does not have the order in which a node's pods last changed, which decides among
// pods of equal priority and start: what the scheduler decides in another order is equal too, and Compare adds it to the
// step's decisions.
//
// If the scheduler considers only some of many nodes, its decision must be among the engine's, unless the engine calls
// them approximate; it must then bind the pod, too. Their messages for a pod that is not bound must be equal, too.
func Compare(ctx context.Context, step Step) (*Comparison, error) {
	pod := nameOf(step.Pod).String()
	engine, err := NewEngine(step.Before).Decide(pod)
	if err != nil {
		return nil, err
	}
	if engine.Approximate {
		result := Approximate
		if step.Decision.Node == "" && engine.Sampled {
			result = Different
		}
		return &Comparison{step, engine, result}, nil
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
	result := Equal
	if len(schedulers) > 1 {
		slices.SortFunc(schedulers, compareDecisions)
		step.Decision.Equals = schedulers
	}
	if len(schedulers) > 1 || len(engines) > 1 {
		result = Tied
	}
	if missing(engines, schedulers) || !engine.Sampled && missing(schedulers, engines) || !sameMessage(engine, step.Decision) {
		result = Different
	}
	return &Comparison{step, engine, result}, nil
}

// placementFound is how a message of kube-scheduler about a preemption begins, from 1.37.
const placementFound = "found a potential placement for pod"

// sameMessage compares messages; where there is a tie, each names the node of its own choice.
func sameMessage(engine, scheduler Decision) bool {
	if engine.Equals == nil {
		return engine.Message == scheduler.Message
	}
	one, _, found := strings.Cut(engine.Message, placementFound)
	other, _, alsoFound := strings.Cut(scheduler.Message, placementFound)
	return one == other && found == alsoFound
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

// Minimal is a difference on the smallest part of its snapshot that is found to still show one.
func (c *Comparison) Minimal(ctx context.Context) *Comparison {
	ctx, cancel := context.WithTimeout(ctx, smallPatience)
	defer cancel()
	pod := nameOf(c.Step.Pod).String()
	smallest := c
	Minimal(ctx, c.Step.Before, pod, func(s *Snapshot) bool {
		step, err := DecideOneInProcess(ctx, s, pod, nil)
		if err != nil {
			return false
		}
		compared, err := Compare(ctx, step)
		if err != nil || compared.Result != Different || ctx.Err() != nil { // an end in the middle fails a binding
			return false
		}
		smallest = compared
		return true
	})
	return smallest
}

// String is the snapshot and both decisions.
func (c *Comparison) String() string {
	return fmt.Sprintf("%sdecision on %s\nkube-scheduler: %s\nengine:         %s",
		c.Step.Before, nameOf(c.Step.Pod), c.Step.Decision.withEquals(), c.Engine.withEquals())
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
