package scenario

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"
)

// TestASimulationTellsTheStoryOfTheCluster compares the outline of a simulated story with that of the same one on a real scheduler, which every
// backend's telling is held to: per object the same states, the same numbers, the same order.
func TestASimulationTellsTheStoryOfTheCluster(t *testing.T) {
	root := filepath.Join("..", "..")
	for _, story := range Stories(Brief) {
		file := simulated(story.Name)
		if file == "" {
			continue
		}
		t.Run(story.Name, func(t *testing.T) {
			s, err := scenariofile.ReadFile(filepath.Join(root, "examples", "scenarios", file))
			if err != nil {
				t.Fatal(err)
			}
			events, err := simulate(context.Background(), s)
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(outlineFile(root, story))
			if err != nil {
				t.Fatal(err)
			}
			if diff := differences(ofSimulations(string(want)), ofSimulations(story.Outline(events))); diff != "" {
				t.Error(diff)
			}
		})
	}
}
