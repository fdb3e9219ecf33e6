package simulator_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator"
)

// The two published scenarios are equal but for the rule; what they show must not depend on the seed.
func TestVictimsByCheckpointAgeLoseLessWork(t *testing.T) {
	var lost, kept int64
	for seed := range uint64(5) {
		without := read(t, filepath.Join(examples, "victims-by-admission.yaml"))
		with := read(t, filepath.Join(examples, "victims-by-checkpoint-age.yaml"))
		_, off := run(t, without, simulator.Options{Seed: &seed})
		_, on := run(t, with, simulator.Options{Seed: &seed})
		if off.Evictions == 0 || off.Finished != off.Jobs || on.Finished != on.Jobs {
			t.Fatalf("the runs show nothing: %d evictions, %d and %d of %d jobs ended", off.Evictions, off.Finished, on.Finished, off.Jobs)
		}
		if on.Lost*10 > off.Lost*7 {
			t.Errorf("seed %d: %d GPU-seconds lost with the rule, %d without: less than 30 %% fewer", seed, on.Lost, off.Lost)
		}
		if on.Waits[0].Priority != 1000 || on.Waits[0].Waiting.P99 > off.Waits[0].Waiting.P99 {
			t.Errorf("seed %d: jobs of priority 1000 wait longer: %v with the rule, %v without", seed, on.Waits[0], off.Waits[0])
		}
		lost, kept = lost+off.Lost, kept+off.Lost-on.Lost

		with.CheckpointAge, with.Name, with.Description = nil, without.Name, without.Description
		_, same := run(t, with, simulator.Options{Seed: &seed})
		if diff := cmp.Diff(off, same); diff != "" {
			t.Fatalf("the scenarios differ by more than the rule: %s", diff)
		}
	}
	t.Logf("%d %% of the work that evictions lost is kept", kept*100/lost)
}
