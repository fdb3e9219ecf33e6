package scenario

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"
)

func TestAReplayHasTheRandomFailuresOfTheSimulation(t *testing.T) {
	file, err := scenariofile.ReadFile(filepath.Join("..", "..", "examples", "scenarios", "random-failures.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	file.Faults = []scenariofile.Fault{{At: 1000, Job: "survivor"}}
	drawn, err := withDrawnFailures(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	if drawn.Failures != nil || len(drawn.Faults) != 3 || drawn.Faults[0] != file.Faults[0] {
		t.Fatalf("%+v, %+v", drawn.Failures, drawn.Faults)
	}
	for _, fault := range drawn.Faults[1:] {
		if fault.Node == "" || fault.At == 0 || fault.Returns != file.Failures.Repair {
			t.Errorf("%+v", fault)
		}
	}
	want, err := simulate(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	got, err := simulate(t.Context(), drawn)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the file with the listed failures has another simulation: %s", diff)
	}
}
