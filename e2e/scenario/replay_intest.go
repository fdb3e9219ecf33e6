package scenario

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"
)

// simulated is the scenario file, below examples/scenarios, that a story is too; "" where it is none.
func simulated(story string) string {
	switch story {
	case "elastic-scheduling":
		return "elastic-scheduling.yaml"
	case "queue-priorities":
		return "queue-priorities.yaml"
	case "under-a-queue":
		return "elastic-under-a-queue.yaml"
	}
	return ""
}

// Replayer is where scenario files can be replayed.
type Replayer interface {
	// ClusterFor returns a cluster with the file's nodes and, where the file has queues, with Kueue's API; and how to let it
	// go.
	ClusterFor(ctx context.Context, file *scenariofile.Scenario, place Place) (cluster Cluster, release func() error, err error)
}

// ReplayInTest runs the scenario file of a story twice, in virtual time and on a cluster, and expects the two logs to tell
// the same: their outlines are equal, with the story's own order of moments. The cluster's log and outline stay in the folder
// named out below e2e/out. root is the repository.
func ReplayInTest(t *testing.T, story Story, replayer Replayer, speedUp int, root, out string) {
	t.Helper()
	file, err := scenariofile.ReadFile(filepath.Join(root, "examples", "scenarios", simulated(story.Name)))
	if err != nil {
		t.Fatal(err)
	}
	virtual, err := simulate(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	dir := OutDir(root, out)
	unlock, err := freshDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unlock(); err != nil {
			t.Error(err)
		}
	}()
	cluster, release, err := replayer.ClusterFor(t.Context(), file, Place{Out: dir, Say: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := release(); err != nil {
			t.Error(err)
		}
	}()
	var narrator Narrator
	replay := Replay{File: file, SpeedUp: speedUp, Root: root, Out: dir, Observe: func(event eventlog.Event) {
		for _, line := range narrator.Tell(event) {
			t.Logf("%7.2f s  %-14s %-9s %s", line.At.Seconds(), line.Job, line.Who, line.Text)
		}
	}}
	events, err := replay.Run(t.Context(), cluster)
	if err != nil {
		t.Error(err)
	}
	outline := ofSimulations(story.Outline(concluded(events)))
	if err := os.WriteFile(filepath.Join(dir, "outline.txt"), []byte(outline), 0o600); err != nil {
		t.Error(err)
	}
	if diff := differences(ofSimulations(story.Outline(virtual)), outline); diff != "" {
		t.Errorf("the cluster told another story than the simulation (-simulated +replayed):\n%s", diff)
	}
}

// simulate is the log of a file in virtual time.
func simulate(ctx context.Context, file *scenariofile.Scenario) ([]eventlog.Event, error) {
	var events []eventlog.Event
	log := func(e eventlog.Event) error {
		events = append(events, e)
		return nil
	}
	_, err := simulator.Run(ctx, file, simulator.Options{Log: log})
	return concluded(events), err
}

// concluded is a file's log as that of a story, which goes on: what it has made is destroyed.
func concluded(events []eventlog.Event) []eventlog.Event {
	if len(events) == 0 {
		return nil
	}
	return append(events, eventlog.Event{Time: events[len(events)-1].Time.Add(time.Second), Stage: &eventlog.Stage{Name: StageDestroy}})
}

// ofSimulations is an outline without the sections that a simulation has nothing to say about: Terraform's, and the models.
func ofSimulations(outline string) string {
	var kept strings.Builder
	skipping := false
	for line := range strings.Lines(outline) {
		if !strings.HasPrefix(line, " ") {
			switch strings.TrimSpace(line) {
			case "plans", "models", "left":
				skipping = true
			default:
				skipping = false
			}
		}
		if !skipping {
			kept.WriteString(line)
		}
	}
	return kept.String()
}
