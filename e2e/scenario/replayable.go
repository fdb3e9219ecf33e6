package scenario

import (
	"fmt"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"
)

// NotReplayableError reports that a scenario file uses features that a replay cannot reproduce on a cluster.
type NotReplayableError struct {
	Scenario string
	Features []Unsupported
}

// Unsupported is a field of a scenario file that a replay cannot reproduce, such as "jobs[0].repeat", and why.
type Unsupported struct{ Field, Why string }

func (e *NotReplayableError) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "scenario file %q cannot be replayed on a cluster, and only elastic-sim runs it:", e.Scenario)
	for _, f := range e.Features {
		fmt.Fprintf(&text, "\n  %s: %s", f.Field, f.Why)
	}
	return text.String()
}

// Why a replay cannot reproduce a feature.
const (
	manyJobs       = "a replay submits the jobs that the file lists, and the jobs of a trace or of a repetition take hours of real time"
	randomFailures = "a replay injects the faults that the file lists, and none at random"
	noFairSharing  = "the embedded cluster's queue controller does not implement fair sharing"
	noBoosts       = "the embedded cluster's queue controller ignores priority boosts"
	noTopology     = "a replay creates no Topology and its jobs request none"
	fixedNodes     = "a cluster of a replay has a fixed number of nodes"
	noGangProgress = "the command of a gang in a replay sleeps, writes no checkpoint and starts again from the beginning"
	noQueuedStart  = "without a queue the pods of a gang start one by one, and each pod of a replay computes as soon as it runs"
	noCheckpoints  = "a replay's elastic jobs have no directory for checkpoints"
	noSpeedCurve   = "the speed of a replay's workers depends on the duration of a gradient only"
)

// Replayable returns a *NotReplayableError if a scenario file uses features that a replay cannot reproduce.
func Replayable(s *scenariofile.Scenario) error {
	var features []Unsupported
	refuse := func(there bool, why, format string, args ...any) {
		if there {
			features = append(features, Unsupported{fmt.Sprintf(format, args...), why})
		}
	}
	refuse(s.Trace != nil, manyJobs, "trace")
	refuse(s.Failures != nil, randomFailures, "failures")
	refuse(s.FairSharing, noFairSharing, "fairSharing")
	refuse(s.CheckpointAge != nil, noBoosts, "checkpointAge")
	refuse(len(s.Topologies) > 0, noTopology, "topologies")
	for i, group := range s.Nodes {
		refuse(len(group.Domains) > 0, noTopology, "nodes[%d].domains", i)
		refuse(group.Autoscale != nil, fixedNodes, "nodes[%d].autoscale", i)
	}
	for i, job := range s.Jobs {
		refuse(job.Repeat != nil, manyJobs, "jobs[%d].repeat", i)
		if g := job.Gang; g != nil {
			refuse(g.Topology != nil, noTopology, "jobs[%d].gang.topology", i)
			refuse(g.Pods > 1 && g.Queue == "", noQueuedStart, "jobs[%d].gang.pods", i)
			refuse(g.CheckpointEvery > 0, noGangProgress, "jobs[%d].gang.checkpointEvery", i)
			refuse(g.Restart > 0, noGangProgress, "jobs[%d].gang.restart", i)
		}
		if e := job.Elastic; e != nil {
			refuse(e.Topology != nil, noTopology, "jobs[%d].elastic.topology", i)
			refuse(e.CheckpointEvery > 0, noCheckpoints, "jobs[%d].elastic.checkpointEvery", i)
			refuse(len(e.Speed.StepsPerSecond) > 0, noSpeedCurve, "jobs[%d].elastic.speed.stepsPerSecond", i)
			refuse(e.Speed.Overhead > 0, noSpeedCurve, "jobs[%d].elastic.speed.overhead", i)
		}
	}
	if len(features) > 0 {
		return &NotReplayableError{Scenario: s.Name, Features: features}
	}
	return nil
}
