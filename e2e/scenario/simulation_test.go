package scenario

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"
)

// TestSimulationHasTheOutlineOfTheCluster compares the outline of a simulated scenario file with that of the same
// scenario on a real scheduler, which every backend's run is compared with: per object the same states, the same
// numbers, the same order.
func TestSimulationHasTheOutlineOfTheCluster(t *testing.T) {
	root := filepath.Join("..", "..")
	for _, scenario := range Scenarios(ForTests) {
		file := scenarioFileOf(scenario.Name)
		if file == "" {
			continue
		}
		t.Run(scenario.Name, func(t *testing.T) {
			s, err := scenariofile.ReadFile(filepath.Join(root, "examples", "scenarios", file))
			if err != nil {
				t.Fatal(err)
			}
			events, err := simulate(context.Background(), s)
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(outlineFile(root, scenario))
			if err != nil {
				t.Fatal(err)
			}
			if diff := differences(simulatedSections(string(want)), simulatedSections(scenario.Outline(withDestroyStage(events)))); diff != "" {
				t.Error(diff)
			}
		})
	}
}
