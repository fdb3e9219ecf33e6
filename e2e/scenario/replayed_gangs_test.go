package scenario

import (
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"
)

func TestGangProgressCountsTheTimeInWhichAllPodsRun(t *testing.T) {
	const second = scenariofile.Duration(1000)
	g := &gangProgress{spec: &scenariofile.Gang{Runs: 100 * second, CheckpointEvery: 30 * second, Restart: 10 * second}}
	for _, look := range []struct {
		at       scenariofile.Duration
		all      bool
		done     scenariofile.Duration
		finished bool
	}{
		{0, false, 0, false},
		{20, true, 0, false},
		{60, true, 40, false},
		{70, false, 30, false}, // back to the checkpoint
		{90, true, 30, false},
		{95, true, 30, false}, // it resumes
		{110, true, 40, false},
		{169, true, 99, false},
		{170, true, 100, true},
	} {
		if finished := g.advance(look.at*second, look.all); finished != look.finished || g.done != look.done*second {
			t.Errorf("at %d s: %v done, finished %t; want %d s, %t", look.at, g.done, finished, look.done, look.finished)
		}
	}
}
