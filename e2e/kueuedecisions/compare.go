package kueuedecisions

import (
	"errors"
	"fmt"

	"github.com/elastic-training/terraform-provider-elastic/e2e/kueuedecisions/inprocess"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/conformance"
)

// Result is how Kueue's and the engine's decisions on a scenario compare.
type Result int

const (
	// Equal decisions are the same in every step, and Kueue's are the same whatever the UIDs are and however often it
	// decides.
	Equal Result = iota
	// Tied decisions are the same as well, but in a step Kueue chooses by UIDs, by the order of a map, or by how often it
	// has tried a workload that fails again and again. Where it chooses by UIDs, the engine has the same UIDs and must
	// decide likewise. In the other cases Kueue differs with itself: the engine must decide as Kueue once does, and later
	// steps are not compared.
	Tied
	// Restless scenarios never come to rest, with neither of the two: workloads evict each other without end. The steps
	// before are equal.
	Restless
	// Different decisions are a defect of the engine.
	Different
)

func (r Result) String() string { return [...]string{"equal", "tied", "restless", "different"}[r] }

// Comparison is a scenario that Kueue and the engine have both decided.
type Comparison struct {
	// Scenario has Kueue's outcomes.
	Scenario *conformance.Scenario
	Result   Result
	// Steps is how many steps were compared. If the result is Different, the last of them differs, as Difference says:
	// what Kueue decided is what was expected.
	Steps      int
	Difference string
}

// Compare lets Kueue and the engine decide on a scenario. An error means that the scenario cannot be played.
func Compare(s *conformance.Scenario) (*Comparison, error) {
	k, err := decide(s)
	if err != nil {
		return nil, err
	}
	c := &Comparison{Scenario: k.scenario, Result: Equal}
	engine, end := conformance.Replay(k.scenario)
	if end != nil && !errors.Is(end, conformance.ErrRestless) {
		return c.different(end.Error()), nil
	}
	for c.Steps < len(s.Steps) {
		d := difference(k.scenario.Outcomes, engine, c.Steps)
		if d == "" && c.Steps < k.alike {
			c.Steps++
			continue
		}
		switch {
		// Here Kueue differs with itself, or may do so: a head that it tries again and again is in another phase.
		case d != "" && !k.everDecides(engine[:min(c.Steps+1, len(engine))], c.Steps == len(engine)):
			return c.different(d), nil
		case d != "" || c.Steps < len(k.scenario.Outcomes):
			c.Result = Tied
		default:
			c.Result = Restless
		}
		c.Steps++
		return c, nil
	}
	if k.byUIDs {
		c.Result = Tied
	}
	return c, nil
}

// difference is how Kueue and the engine differ in a step. An outcome is missing where one does not come to rest.
func difference(kueue, engine []conformance.Outcome, step int) string {
	switch {
	case step < len(kueue) && step < len(engine):
		return kueue[step].Difference(&engine[step])
	case step < len(kueue):
		return "Kueue comes to rest, but the engine does not"
	case step < len(engine):
		return "Kueue does not come to rest, but the engine does"
	}
	return ""
}

// different is the comparison with a difference in the next step.
func (c *Comparison) different(how string) *Comparison {
	c.Result, c.Difference = Different, fmt.Sprintf("step %d (%s): %s", c.Steps, &c.Scenario.Steps[c.Steps], how)
	c.Steps++
	return c
}

// decided is what Kueue made of a scenario.
type decided struct {
	// scenario has the outcomes of all steps, or of those before one after which Kueue did not come to rest.
	scenario *conformance.Scenario
	// again is what Kueue decided the second time: the same in so many steps as alike says.
	again []conformance.Outcome
	alike int
	// byUIDs reports whether other UIDs lead to other decisions.
	byUIDs bool
}

func decide(s *conformance.Scenario) (*decided, error) {
	with := *s
	k := &decided{scenario: &with}
	var err error
	if with.Outcomes, err = play(s, inprocess.Options{}); err != nil {
		return nil, err
	}
	// Most scenarios come out the same whatever is changed. Each time, the order of maps is another one as well.
	if err := k.decideAgain(inprocess.Options{Rhythm: 1, OtherUIDs: true}); err != nil || k.sameAgain() {
		return k, err
	}
	if err := k.decideAgain(inprocess.Options{OtherUIDs: true}); err != nil {
		return nil, err
	}
	k.byUIDs = !k.sameAgain()
	return k, k.decideAgain(inprocess.Options{Rhythm: 1})
}

// play is what Kueue decides until it comes to rest no more.
func play(s *conformance.Scenario, o inprocess.Options) ([]conformance.Outcome, error) {
	outcomes, err := inprocess.Play(s, o)
	if errors.Is(err, conformance.ErrRestless) {
		err = nil
	}
	return outcomes, err
}

// decideAgain lets Kueue decide once more.
func (k *decided) decideAgain(o inprocess.Options) (err error) {
	k.again, err = play(k.scenario, o)
	k.alike = inprocess.FirstDifference(k.scenario.Outcomes, k.again)
	return err
}

// sameAgain reports whether Kueue decided all steps the same again.
func (k *decided) sameAgain() bool {
	return k.alike == len(k.scenario.Outcomes) && k.alike == len(k.again)
}

// repetitions is how often Kueue decides until it decides as the engine. A choice of one in two is missed once in 60,000
// times, and heads that are tried again and again have far fewer phases.
const repetitions = 16

// everDecides reports whether Kueue, if it decides again and again, once has some outcomes, and then does not come to rest
// if restless is set.
func (k *decided) everDecides(wanted []conformance.Outcome, restless bool) bool {
	for try := range uint64(repetitions) {
		outcomes := k.again
		if try > 0 {
			outcomes, _ = inprocess.Play(k.scenario, inprocess.Options{Rhythm: 1 + try})
		}
		same := len(outcomes) >= len(wanted) && (!restless || len(outcomes) == len(wanted))
		for i := 0; same && i < len(wanted); i++ {
			same = outcomes[i].Difference(&wanted[i]) == ""
		}
		if same {
			return true
		}
	}
	return false
}
