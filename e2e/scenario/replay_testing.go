package scenario

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"
)

// scenarioFileOf is the scenario file below examples/scenarios that corresponds to a scenario, "" without one.
func scenarioFileOf(name string) string {
	switch name {
	case "elastic-scheduling":
		return "elastic-scheduling.yaml"
	case "queue-priorities":
		return "queue-priorities.yaml"
	case "under-a-queue":
		return "elastic-under-a-queue.yaml"
	case "gangs-in-a-cohort":
		return "gangs-in-a-cohort.yaml"
	case "a-node-fails":
		return "a-node-fails.yaml"
	case "fair-sharing":
		return "fair-sharing.yaml"
	case "unreliable-nodes":
		return "unreliable-nodes.yaml"
	case "random-failures":
		return "random-failures.yaml"
	case "racks-and-blocks":
		return "racks-and-blocks.yaml"
	}
	return ""
}

// GangsInACohort has the order of moments of the scenario file of that name, which no configuration corresponds to: it is
// only simulated and replayed.
func GangsInACohort() Scenario {
	const research, release = "research", "release"
	return Scenario{Name: "gangs-in-a-cohort", order: []chain{{
		admitted(research, 0), runs(research, taskRole, 0), evicted(research, taskRole), admitted(release, 0), runs(release, taskRole, 0),
		firstEnds(release, taskRole), admitted(research, 1), runs(research, taskRole, 4),
	}}}
}

// ANodeFails is the same of another file.
func ANodeFails() Scenario {
	return Scenario{Name: "a-node-fails", order: []chain{{
		runs("victim", taskRole, 0), firstEnds("victim", taskRole), becomesUnschedulable("victim", taskRole, 1),
		firstEnds("other", taskRole), ofPod("victim", taskRole, 1, "ends", func(pod *eventlog.PodHistory) time.Time { return pod.Ended }),
	}}}
}

// FairSharing is the same of another file.
func FairSharing() Scenario {
	const first, second, third = "first", "second", "third"
	return Scenario{Name: "fair-sharing", order: []chain{{
		admitted(first, 0), admitted(second, 0), runs(second, taskRole, 0), evicted(second, taskRole), admitted(third, 0),
		runs(third, taskRole, 0), firstEnds(third, taskRole), admitted(second, 1), runs(second, taskRole, 2),
	}}}
}

// RacksAndBlocks is the same of another file. Which domain each pod runs in is compared too.
func RacksAndBlocks() Scenario {
	const near, parts, waits = "near", "slices", "waits"
	return Scenario{Name: "racks-and-blocks", order: []chain{
		// The replay's clock is fast: the pods of a gang may start after the next ones are admitted.
		{admitted(near, 0), admitted(parts, 0), admitted("elastic", 0), firstEnds(near, taskRole)},
		{admitted(near, 0), runs(near, taskRole, 3), firstEnds(near, taskRole), runs(near, taskRole, 4)},
		{firstEnds(near, taskRole), firstEnds(parts, taskRole), admitted(waits, 0), runs(waits, taskRole, 1)},
		{admitted("pairs", 0), runs("pairs", taskRole, 3)},
	}}
}

// UnreliableNodes is the chaos scenario as a file: workers, a node, the master and the API server are lost. What happens is
// compared, without an order of its own: the faults are at the same times of the file.
func UnreliableNodes() Scenario { return Scenario{Name: "unreliable-nodes"} }

// RandomFailures is the same of a file whose failures are drawn.
func RandomFailures() Scenario { return Scenario{Name: "random-failures"} }

// Replayer supplies clusters for replays.
type Replayer interface {
	// ClusterFor returns a cluster with the file's nodes and, if the file has queues, with Kueue's API; and a function
	// that releases it.
	ClusterFor(ctx context.Context, file *scenariofile.Scenario, place ClusterOptions) (cluster Cluster, release func() error, err error)
}

// ReplayInTest runs a scenario's file twice, simulated in virtual time and replayed on a cluster. The test fails unless
// the outlines of the two logs, with the scenario's order of moments, are equal. The log and the outline of the cluster
// stay in the folder named out below e2e/out. root is the repository.
func ReplayInTest(t *testing.T, scenario Scenario, replayer Replayer, speedUp int, root, out string) {
	t.Helper()
	ctx, stop := testContext(t)
	defer stop()
	file, err := scenariofile.ReadFile(filepath.Join(root, "examples", "scenarios", scenarioFileOf(scenario.Name)))
	if err != nil {
		t.Fatal(err)
	}
	virtual, err := simulate(ctx, file)
	if err != nil {
		t.Fatal(err)
	}
	virtual = withDestroyStage(virtual)
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
	cluster, release, err := replayer.ClusterFor(ctx, file, ClusterOptions{Out: dir, Logf: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := release(); err != nil {
			t.Error(err)
		}
	}()
	var reporter Reporter
	replay := Replay{File: file, SpeedUp: speedUp, Root: root, Out: dir, Observe: func(event eventlog.Event) {
		for _, line := range reporter.Lines(event) {
			t.Logf("%7.2f s  %-14s %-9s %s", line.At.Seconds(), line.Job, line.Object, line.Text)
		}
	}}
	events, err := replay.Run(ctx, cluster)
	if err != nil {
		t.Error(err)
	}
	outline := simulatedSections(scenario.Outline(withDestroyStage(events)))
	if err := os.WriteFile(filepath.Join(dir, "outline.txt"), []byte(outline), 0o600); err != nil {
		t.Error(err)
	}
	if diff := differences(simulatedSections(scenario.Outline(virtual)), outline); diff != "" {
		t.Errorf("the replay differs from the simulation (-simulated +replayed):\n%s", diff)
	}
}

// withDestroyStage adds the stage to a file's log that follows in a scenario, terraform destroy.
func withDestroyStage(events []eventlog.Event) []eventlog.Event {
	if len(events) == 0 {
		return nil
	}
	return append(events, eventlog.Event{Time: events[len(events)-1].Time.Add(time.Second), Stage: &eventlog.Stage{Name: StageDestroy}})
}

// simulatedSections is an outline without the sections that a simulation does not have: plans, models and leftovers.
func simulatedSections(outline string) string {
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
