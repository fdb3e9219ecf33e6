package scenario

import (
	"fmt"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"
)

// NotReplayableError reports that a scenario file uses features that a replay cannot reproduce on a cluster.
type NotReplayableError struct {
	Scenario string
	Features []string // names of fields, such as "trace" or "jobs[0].repeat"
}

func (e *NotReplayableError) Error() string {
	return fmt.Sprintf("scenario file %q cannot be replayed on a cluster: it uses %s, which only elastic-sim supports", e.Scenario, strings.Join(e.Features, ", "))
}

// Replayable returns a *NotReplayableError if a scenario file uses features that a replay cannot reproduce.
func Replayable(s *scenariofile.Scenario) error {
	var features []string
	refuse := func(there bool, format string, args ...any) {
		if there {
			features = append(features, fmt.Sprintf(format, args...))
		}
	}
	refuse(s.Trace != nil, "trace")
	refuse(len(s.Faults) > 0, "faults")
	refuse(s.Failures != nil, "failures")
	refuse(s.FairSharing, "fairSharing")
	refuse(s.CheckpointAge != nil, "checkpointAge")
	refuse(len(s.Cohorts) > 0, "cohorts")
	for i, group := range s.Nodes {
		refuse(group.Autoscale != nil, "nodes[%d].autoscale", i)
	}
	for i, job := range s.Jobs {
		refuse(job.Repeat != nil, "jobs[%d].repeat", i)
		if g := job.Gang; g != nil {
			refuse(g.Pods > 1, "jobs[%d].gang.pods", i)
			refuse(g.CheckpointEvery > 0, "jobs[%d].gang.checkpointEvery", i)
			refuse(g.Restart > 0, "jobs[%d].gang.restart", i)
		}
		if e := job.Elastic; e != nil {
			refuse(e.CheckpointEvery > 0, "jobs[%d].elastic.checkpointEvery", i)
			refuse(len(e.Speed.StepsPerSecond) > 0, "jobs[%d].elastic.speed.stepsPerSecond", i)
			refuse(e.Speed.Overhead > 0, "jobs[%d].elastic.speed.overhead", i)
		}
	}
	if len(features) > 0 {
		return &NotReplayableError{Scenario: s.Name, Features: features}
	}
	return nil
}
