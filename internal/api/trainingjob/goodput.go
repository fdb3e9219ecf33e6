package trainingjob

import "time"

// GoodputPhase is what a job spends its time on. At every moment of its life it is in exactly one of them.
type GoodputPhase string

// The goodput phases, in the order in which they are shown.
const (
	GoodputComputing      GoodputPhase = "computing"        // steps that were never done before
	GoodputWaitingForRoom GoodputPhase = "waiting_for_room" // pods of the minimum do not run
	GoodputRecovering     GoodputPhase = "recovering"       // enough pods run, and no step can begin yet; or no master runs
	GoodputRecomputing    GoodputPhase = "recomputing"      // steps that were done before, and lost
	GoodputEvaluating     GoodputPhase = "evaluating"       // on the validation data, while training is paused
	GoodputSaving         GoodputPhase = "saving"           // the final model
)

// GoodputPhases are all of them, in that order.
func GoodputPhases() []GoodputPhase {
	return []GoodputPhase{GoodputComputing, GoodputWaitingForRoom, GoodputRecovering, GoodputRecomputing, GoodputEvaluating, GoodputSaving}
}

// GoodputSplit is how a job has spent its life so far: from the begin of its first master to At, over all masters.
type GoodputSplit struct {
	Phase   GoodputPhase             `json:"phase,omitempty"` // now; "" when the job has ended
	Seconds map[GoodputPhase]float64 `json:"seconds"`         // they add up to the job's life
	// UnobservedSeconds is the part of recovering in which no master reported: whether the job waited for room then is
	// not known.
	UnobservedSeconds float64 `json:"unobserved_seconds,omitempty"`
	// Unknown names the phases that cannot be distinguished for this kind of job.
	Unknown string `json:"unknown,omitempty"`

	At          time.Time `json:"at"`
	HighestStep int64     `json:"highest_step,omitempty"` // ever done: below it steps are recomputed
	JobDigest   string    `json:"job_digest,omitempty"`
}
