package simulator

import (
	"slices"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/checkpointage"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"
)

// boosts is the work of the controller that raises the priority of workloads with much unsaved work
// (elastic-trainer checkpoint-age): the same rule, in virtual time.
type boosts struct {
	rule  checkpointage.Rule
	every Time
	// holding are the workloads with quota whose jobs report checkpoints, in the order of their admission.
	holding []*workload
	armed   bool // there is an event at which they are looked at
}

// newBoosts is nil where a scenario does not switch the rule on.
func newBoosts(from *scenariofile.CheckpointAge) *boosts {
	if from == nil {
		return nil
	}
	return &boosts{rule: from.Rule(), every: Time(from.Every)}
}

// reports is a workload that was admitted, and whose job reports its checkpoints.
func (s *simulation) reports(w *workload) {
	w.since = s.now
	if s.boosts != nil {
		s.boosts.holding = append(s.boosts.holding, w)
	}
}

// watchAges makes sure that the ages of checkpoints are looked at again. A job calls it when it begins to compute: one that
// does not compute ages too, but loses nothing by it, and a simulation in which nothing else happens should end.
func (s *simulation) watchAges() {
	if b := s.boosts; b != nil && !b.armed {
		b.armed = true
		s.eventQueue.add(event{at: s.now - s.now%b.every + b.every, kind: agesSeen})
	}
}

// seeAges sets the boosts by the ages of the last checkpoints.
func (s *simulation) seeAges() {
	b := s.boosts
	b.armed = false
	computing := false
	for _, w := range b.holding {
		at, computes := w.owner.checkpointed()
		computing = computing || computes
		s.boost(w, b.rule.Decide(s.clock(s.now), checkpointage.Workload{
			Holds: true, Since: s.clock(w.since), Checkpoint: s.clock(at), Boost: w.boost, Changed: w.boosted,
		}))
	}
	if computing {
		s.watchAges()
	}
}

// boost sets a workload's boost.
func (s *simulation) boost(w *workload, boost int32) {
	if w.boost == boost {
		return
	}
	w.boost, w.boosted = boost, s.clock(s.now)
	s.updateEngine(w)
}

// unboost ends the boost of a workload that loses its quota, or that ends.
func (s *simulation) unboost(w *workload) {
	if b := s.boosts; b != nil {
		b.holding = slices.DeleteFunc(b.holding, func(other *workload) bool { return other == w })
		s.boost(w, 0)
		w.boosted = time.Time{}
	}
}
