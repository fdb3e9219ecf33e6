package embedded

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/e2e/scenario"
	"github.com/elastic-training/terraform-provider-elastic/simcluster"
)

// TestReplayOfAScenarioFileMatchesItsSimulation replays the scenario files that correspond to scenarios. Logs and
// outlines stay below e2e/out.
func TestReplayOfAScenarioFileMatchesItsSimulation(t *testing.T) {
	t.Parallel()
	backend, err := Find()
	if err != nil {
		if os.Getenv(simcluster.BinaryVariable) == "" {
			t.Skipf("a replay needs executables: %v", err)
		}
		t.Fatal(err)
	}
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	speedUps := map[string]int{"elastic-scheduling": 1, "queue-priorities": 8} // the second one's file takes five minutes
	if os.Getenv("ELASTIC_SOAK") != "" {
		// Two minutes. A faster clock would leave a slow machine no time to end a job before the next one is submitted.
		speedUps["under-a-queue"] = 1
	}
	others := []scenario.Scenario{scenario.GangsInACohort(), scenario.ANodeFails(), scenario.FairSharing(), scenario.UnreliableNodes(), scenario.RandomFailures()}
	for _, sc := range others {
		speedUps[sc.Name] = 1
	}
	racks := scenario.RacksAndBlocks()
	speedUps[racks.Name] = 40 // 37 minutes, most of which pass while nothing but computing happens
	others = append(others, racks)
	for _, sc := range append(scenario.Scenarios(scenario.ForTests), others...) {
		if speedUp, there := speedUps[sc.Name]; there {
			t.Run(sc.Name, func(t *testing.T) {
				t.Parallel()
				scenario.ReplayInTest(t, sc, backend, speedUp, root, "replay-"+sc.Name)
			})
		}
	}
}
