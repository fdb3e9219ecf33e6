// Package goodput splits a job's life into goodput phases: statuses with times in, durations out. At every moment the
// job is in exactly one phase, so the phases add up to its life, over all of its masters. It reads no clock.
package goodput

import (
	"maps"
	"math"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
)

// Tracker is a job's life up to a moment.
type Tracker struct {
	job        string // digest
	spent      map[trainingjob.GoodputPhase]time.Duration
	unobserved time.Duration // of recovering
	unknown    string
	phase      trainingjob.GoodputPhase // since at; "" once the job has ended
	at         time.Time
	highest    int64
}

// Begin is the life of a job whose first master begins: until it reports more, it recovers.
func Begin(job string, at time.Time) Tracker {
	return Tracker{job: job, spent: map[trainingjob.GoodputPhase]time.Duration{}, phase: trainingjob.GoodputRecovering, at: at}
}

// Resume is Begin for a later master. The time since the last report is recovering, and unobserved. The report of a job
// with another digest is of another model's steps, and of its life.
func Resume(earlier *trainingjob.GoodputSplit, job string, at time.Time) Tracker {
	t := Begin(job, at)
	if earlier == nil || earlier.JobDigest != job {
		return t
	}
	t.highest = max(0, earlier.HighestStep)
	for _, p := range trainingjob.GoodputPhases() {
		t.spent[p] = duration(earlier.Seconds[p])
	}
	t.unobserved = min(duration(earlier.UnobservedSeconds), t.spent[trainingjob.GoodputRecovering])
	if earlier.Phase != "" && at.After(earlier.At) { // after its end a job has no life
		absent := at.Sub(earlier.At)
		t.spent[trainingjob.GoodputRecovering] += absent
		t.unobserved += absent
	}
	return t
}

// mostSeconds is what a duration can hold. Who may write a ConfigMap can write anything.
const mostSeconds = 100 * 365 * 24 * 3600

func duration(seconds float64) time.Duration {
	return time.Duration(math.Round(min(max(seconds, 0), mostSeconds) * float64(time.Second)))
}

// Clone shares nothing with t.
func (t *Tracker) Clone() Tracker {
	c := *t
	c.spent = maps.Clone(t.spent)
	return c
}

// Observe takes a status: the job is in its phase from then on.
func (t *Tracker) Observe(at time.Time, s trainingjob.Status) {
	t.advance(at)
	switch {
	case s.Phase.Finished():
		t.phase = ""
	case s.GoodputSplit != nil:
		t.phase, t.unknown = s.GoodputSplit.Phase, s.GoodputSplit.Unknown
		if t.phase == trainingjob.GoodputComputing && s.StepsDone < t.highest {
			t.phase = trainingjob.GoodputRecomputing
		}
	}
	t.highest = max(t.highest, s.StepsDone)
}

// advance counts the time up to a moment. A clock that is set back adds nothing.
func (t *Tracker) advance(at time.Time) {
	if !at.After(t.at) {
		return
	}
	if t.phase != "" {
		t.spent[t.phase] += at.Sub(t.at)
	}
	t.at = at
}

// Split is the life up to a moment; it shares nothing with t.
func (t *Tracker) Split(at time.Time) *trainingjob.GoodputSplit {
	s := &trainingjob.GoodputSplit{
		Phase: t.phase, Seconds: map[trainingjob.GoodputPhase]float64{}, UnobservedSeconds: t.unobserved.Seconds(), Unknown: t.unknown,
		At: t.at, HighestStep: t.highest, JobDigest: t.job,
	}
	for _, p := range trainingjob.GoodputPhases() {
		spent := t.spent[p]
		if p == t.phase {
			spent += max(0, at.Sub(t.at))
		}
		s.Seconds[p] = spent.Seconds()
	}
	if at.After(t.at) {
		s.At = at
	}
	return s
}

// PhaseOf is what a running job does, as its coordinator sees it. Steps that were done before are the Tracker's to
// know.
func PhaseOf(c coordinator.Status) trainingjob.GoodputPhase {
	present, ready, missing := 0, 0, 0
	for _, w := range c.Workers {
		switch w.State {
		case coordinator.WorkerPending:
			missing++
		case coordinator.WorkerReady:
			present, ready = present+1, ready+1
		default:
			present++
		}
	}
	waiting := trainingjob.GoodputRecovering
	if missing > 0 && present < max(1, c.Min) {
		waiting = trainingjob.GoodputWaitingForRoom
	}
	switch c.Phase {
	case coordinator.Running:
		return trainingjob.GoodputComputing
	case coordinator.Evaluating:
		if ready == 0 {
			return waiting
		}
		return trainingjob.GoodputEvaluating
	case coordinator.Saving, coordinator.CannotSave:
		return trainingjob.GoodputSaving
	case coordinator.Waiting:
		return waiting
	default: // the master ends before its job has
		return trainingjob.GoodputRecovering
	}
}
