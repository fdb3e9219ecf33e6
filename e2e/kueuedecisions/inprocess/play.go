// Package inprocess plays scenarios to Kueue's own queue manager, cache, scheduler and Workload controller, in one process
// on a fake client and a fake clock, and returns what came of them. Nothing of Kueue is written again here; only the
// part of other controllers is played: a job that is evicted stops at once, and its quota is released before the next
// cycle.
//
// A scenario and its outcomes have the form of package conformance, whose Replay does the same with the engine.
package inprocess

import (
	"encoding/json"
	"fmt"
	"maps"
	"sync"

	"github.com/go-logr/logr"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/conformance"
)

// patience is how many cycles without any event a head is tried before it is left alone.
const patience = 5

// Options are what Kueue's decisions should not depend on.
type Options struct {
	// Rhythm draws how many cycles more than usual a head is tried that fails again and again; 0: none. Kueue goes on with
	// it for ever, so that everything else happens at one of those cycles.
	Rhythm uint64
	// OtherUIDs turns the order of the scenario's UIDs round.
	OtherUIDs bool
}

// Play gives a scenario's steps to Kueue and returns what came of each. An error names the first step that could not
// be done, or after which Kueue did not come to rest.
func Play(s *conformance.Scenario, o Options) ([]conformance.Outcome, error) {
	defer enter(s.PriorityBoost)()
	r, err := newRun(s, o)
	if err != nil {
		return nil, err
	}
	outcomes := make([]conformance.Outcome, 0, len(s.Steps))
	for i := range s.Steps {
		o, err := r.step(&s.Steps[i])
		if err != nil {
			return outcomes, fmt.Errorf("step %d (%s): %w", i, &s.Steps[i], err)
		}
		outcomes = append(outcomes, o)
	}
	return outcomes, nil
}

// gates guards Kueue's feature gates, which a process has once: a run with priority boosts goes on alone.
var gates sync.RWMutex

var configure = sync.OnceFunc(func() {
	ctrl.SetLogger(logr.Discard())
	// The fake client cannot remove fields by server-side apply.
	setGate("WorkloadRequestUseMergePatch", true)
})

// enter waits until the gates may be set as a run needs them, sets them, and returns what ends the run.
func enter(boost bool) (leave func()) {
	configure()
	if !boost {
		gates.RLock()
		return gates.RUnlock
	}
	gates.Lock()
	setGate("PriorityBoost", true)
	return func() {
		setGate("PriorityBoost", false)
		gates.Unlock()
	}
}

func setGate(name string, on bool) {
	if err := utilfeature.DefaultMutableFeatureGate.Set(fmt.Sprintf("%s=%t", name, on)); err != nil {
		panic(err) // the release of Kueue has another name for it
	}
}

// Release is the release of Kueue that go.mod requires.
const Release = "v0.19.2"

// FirstDifference is the first step whose outcomes differ in more than UIDs and messages, which depend on the order of maps
// in places; their number if there is none.
func FirstDifference(a, b []conformance.Outcome) int {
	for i := range min(len(a), len(b)) {
		if decision(a[i]) != decision(b[i]) {
			return i
		}
	}
	return min(len(a), len(b))
}

// decision is what an outcome says beside that, as JSON.
func decision(o conformance.Outcome) string {
	o.Workloads = maps.Clone(o.Workloads)
	for name, w := range o.Workloads {
		w.Why, w.UID = nil, ""
		o.Workloads[name] = w
	}
	text, err := json.Marshal(o)
	if err != nil {
		panic(err) // it is plain data
	}
	return string(text)
}
