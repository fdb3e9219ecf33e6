package scenariofile

import (
	"fmt"
	"strings"
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
	manyJobs     = "a replay submits the jobs that the file lists, and the jobs of a trace or of a repetition take hours of real time"
	noBoosts     = "the embedded cluster's queue controller ignores priority boosts"
	noUsages     = "the embedded cluster's queue controller does not order workloads by what their local queues have used"
	fixedNodes   = "a cluster of a replay has a fixed number of nodes"
	noSpeedCurve = "the speed of a replay's workers depends on the duration of a gradient only"
)

// Replayable returns a *NotReplayableError if a scenario file uses features that a replay cannot reproduce.
func (s *Scenario) Replayable() error {
	var features []Unsupported
	refuse := func(there bool, why, format string, args ...any) {
		if there {
			features = append(features, Unsupported{fmt.Sprintf(format, args...), why})
		}
	}
	refuse(s.Trace != nil, manyJobs, "trace")
	refuse(s.AdmissionFairSharing != nil, noUsages, "admissionFairSharing")
	refuse(s.CheckpointAge != nil, noBoosts, "checkpointAge")
	for i, group := range s.Nodes {
		refuse(group.Autoscale != nil, fixedNodes, "nodes[%d].autoscale", i)
	}
	for i, job := range s.Jobs {
		refuse(job.Repeat != nil, manyJobs, "jobs[%d].repeat", i)
		if e := job.Elastic; e != nil {
			refuse(len(e.Speed.StepsPerSecond) > 0, noSpeedCurve, "jobs[%d].elastic.speed.stepsPerSecond", i)
			refuse(e.Speed.Overhead > 0, noSpeedCurve, "jobs[%d].elastic.speed.overhead", i)
		}
	}
	if len(features) > 0 {
		return &NotReplayableError{Scenario: s.Name, Features: features}
	}
	return nil
}
