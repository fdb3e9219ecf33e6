package scenario

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/simulator"
	"github.com/elastic-training/terraform-provider-elastic/internal/simulator/scenario"
)

// simulated are the stories that are scenario files too.
var simulated = map[string]string{
	"elastic-scheduling": "elastic-scheduling.yaml",
	"queue-priorities":   "queue-priorities.yaml",
	"under-a-queue":      "elastic-under-a-queue.yaml",
}

// ofClusters are the sections of an outline that a simulation has nothing to say about: Terraform's, and the models.
var ofClusters = []string{"plans", "models", "left"}

// TestASimulationTellsTheStoryOfTheCluster compares the outline of a simulated story with that of the same one on a real scheduler, which every
// backend's telling is held to: per object the same states, the same numbers, the same order.
func TestASimulationTellsTheStoryOfTheCluster(t *testing.T) {
	root := filepath.Join("..", "..")
	for _, story := range Stories(Brief) {
		file, there := simulated[story.Name]
		if !there {
			continue
		}
		t.Run(story.Name, func(t *testing.T) {
			s, err := scenario.ReadFile(filepath.Join(root, "examples", "scenarios", file))
			if err != nil {
				t.Fatal(err)
			}
			var events []eventlog.Event
			log := func(e eventlog.Event) error {
				events = append(events, e)
				return nil
			}
			if _, err := simulator.Run(context.Background(), s, simulator.Options{Log: log}); err != nil {
				t.Fatal(err)
			}
			// On a cluster the story goes on: what it has made is destroyed.
			events = append(events, eventlog.Event{Time: events[len(events)-1].Time.Add(time.Second), Stage: &eventlog.Stage{Name: StageDestroy}})
			want, err := os.ReadFile(outlineFile(root, story))
			if err != nil {
				t.Fatal(err)
			}
			if diff := differences(without(string(want), ofClusters), without(story.Outline(events), ofClusters)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// without is an outline without some of its sections.
func without(outline string, sections []string) string {
	var kept strings.Builder
	skipping := false
	for line := range strings.Lines(outline) {
		if !strings.HasPrefix(line, " ") {
			skipping = false
			for _, section := range sections {
				skipping = skipping || strings.TrimSpace(line) == section
			}
		}
		if !skipping {
			kept.WriteString(line)
		}
	}
	return kept.String()
}
