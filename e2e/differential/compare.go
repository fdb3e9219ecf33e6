package differential

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// A Difference is a step in which the engine decides otherwise than the real scheduler.
type Difference struct {
	Step   Step
	Engine Decision
}

// Compare has the engine decide on what the real scheduler decided on; nil where it decides the same.
func Compare(step Step) (*Difference, error) {
	engine, err := DecideByEngine(step.Before, nameOf(step.Pod).String())
	if err != nil {
		return nil, err
	}
	if slices.EqualFunc(engine.possible(), step.Decision.possible(), func(a, b Decision) bool { return compareDecisions(a, b) == 0 }) {
		return nil, nil
	}
	return &Difference{step, engine}, nil
}

// possible is every decision that could as well have been taken.
func (d Decision) possible() []Decision {
	if d.Equals != nil {
		return d.Equals
	}
	return []Decision{d}
}

// Minimal is the difference on the smallest part of its snapshot that still shows one.
func (d *Difference) Minimal(ctx context.Context) *Difference {
	pod := nameOf(d.Step.Pod).String()
	smallest := d
	Minimal(d.Step.Before, pod, func(s *Snapshot) bool {
		step, err := DecideOneInProcess(ctx, s, pod)
		if err != nil {
			return false
		}
		difference, err := Compare(step)
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
