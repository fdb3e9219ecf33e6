// Package disruption records how pods of a job were taken away and what that cost: events and statuses with times in,
// records out. It reads no clock.
package disruption

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
	"github.com/elastic-training/terraform-provider-elastic/internal/wording"
)

// Tracker is the record of a job up to a moment. Its zero value is that of a job that has just begun.
type Tracker struct {
	sum     trainingjob.Disruptions // but for Newest
	all     []record                // the newest, oldest first
	known   map[int]bool            // workers whose end is recorded
	retired map[int]bool            // workers that the master itself deletes

	at     time.Time
	phase  trainingjob.GoodputPhase // since at
	status trainingjob.Status       // as of at
	ready  map[int]bool
	// missing were ready and are not any more, for a reason that is not known yet: a stream ends before the pod's end is
	// seen, and others are not ready while they agree on a new group.
	missing map[int]bool
	reached int64 // the step up to which the present work has come
	highest int64 // ever
	// claimless are steps that were lost before it was known why: a stream ends before the pod's end is seen.
	claimless int64
}

// record is a disruption, and whether fewer workers were ready since: before that its full size is not lost yet.
type record struct {
	trainingjob.Disruption
	below   bool
	starts  int64 // of the command, for a job whose steps are not known
	stopped bool  // the work has stopped since
}

// Resume continues the record of the masters before, whose last status is given, before anything else is noted. A
// master that did not report its end was lost after its last report.
func Resume(earlier trainingjob.Status, job string, at time.Time) Tracker {
	t := Tracker{at: at}
	split := earlier.GoodputSplit
	if split == nil || split.JobDigest != job {
		return t
	}
	t.highest = max(0, split.HighestStep)
	t.reached = t.highest
	stopped := false
	if d := earlier.Disruptions; d != nil {
		stopped = d.MasterStopped
		t.sum = trainingjob.Disruptions{Count: max(0, d.Count), LostSteps: max(0, d.LostSteps), LostSeconds: max(0, d.LostSeconds)}
		for _, d := range d.Newest[max(0, len(d.Newest)-trainingjob.MostDisruptions):] {
			t.all = append(t.all, record{Disruption: d, below: true, starts: -1, stopped: true})
		}
	}
	if split.Phase == "" { // the job had ended
		return t
	}
	if !stopped {
		t.status = earlier
		t.begin(split.At, trainingjob.RoleMaster, trainingjob.DisruptionCause{Kind: trainingjob.DisruptionLost}, readyOf(earlier))
		t.all[len(t.all)-1].below, t.all[len(t.all)-1].stopped, t.all[len(t.all)-1].starts = true, true, -1
	}
	t.status, t.phase = trainingjob.Status{}, trainingjob.GoodputRecovering
	t.lose(at.Sub(split.At))
	return t
}

// Clone shares nothing with t.
func (t *Tracker) Clone() Tracker {
	c := *t
	c.all = slices.Clone(t.all)
	return c // the maps are for events, which a copy does not take
}

// OnEvent takes an event of the coordinator's, while the job has not ended.
func (t *Tracker) OnEvent(at time.Time, e coordinator.Event) {
	switch e := e.(type) {
	case coordinator.Stop:
		cause := e.ItsCause
		if e.Cause == coordinator.Suspended {
			cause.Kind = trainingjob.DisruptionSuspended
		}
		cause.Kind = cmp.Or(cause.Kind, trainingjob.DisruptionDeleted)
		t.begin(at, trainingjob.RoleMaster, cause, t.workers())
		t.sum.MasterStopped = true
	case coordinator.PodChanged:
		ended := e.State == coordinator.PodEnded
		if !e.Terminating && !ended {
			delete(t.known, e.Worker) // a new pod has the number
			return
		}
		if !t.known[e.Worker] && !t.retired[e.Worker] && (e.Terminating || !t.finishing()) {
			cause := e.Cause
			cause.Kind = cmp.Or(cause.Kind, kindOf(e))
			cause.Pod = cmp.Or(cause.Pod, e.Name, fmt.Sprintf("worker %d", e.Worker))
			t.begin(at, trainingjob.RoleWorker, cause, t.workers())
			t.all[len(t.all)-1].below = !t.ready[e.Worker]
		}
		t.known = with(t.known, e.Worker)
		delete(t.missing, e.Worker)
		if ended {
			delete(t.retired, e.Worker)
		}
	}
}

func with(set map[int]bool, worker int) map[int]bool {
	if set == nil {
		set = map[int]bool{}
	}
	set[worker] = true
	return set
}

// finishing reports whether workers end in good order: all steps are done.
func (t *Tracker) finishing() bool { return t.phase == trainingjob.GoodputSaving }

func kindOf(e coordinator.PodChanged) trainingjob.DisruptionKind {
	switch {
	case e.Preempted:
		return trainingjob.DisruptionPreempted
	case e.Terminating:
		return trainingjob.DisruptionDeleted
	default:
		return trainingjob.DisruptionFailed
	}
}

// OnRetire notes that the master itself deletes a worker.
func (t *Tracker) OnRetire(worker int) {
	t.retired = with(t.retired, worker)
	delete(t.missing, worker)
}

// workers is how many were ready before the losses that are not explained yet.
func (t *Tracker) workers() int { return len(t.ready) + len(t.missing) }

// OnStep notes that a step was done.
func (t *Tracker) OnStep() {
	t.reached++
	t.highest = max(t.highest, t.reached)
}

func (t *Tracker) begin(at time.Time, role string, cause trainingjob.DisruptionCause, workers int) {
	t.sum.Count++
	t.all = append(t.all, record{starts: t.status.Starts, Disruption: trainingjob.Disruption{
		At: at, Role: role, DisruptionCause: cause, Step: t.highest, Workers: workers, LostSteps: t.claimless,
	}})
	t.sum.LostSteps += t.claimless
	t.claimless = 0
	if n := len(t.all); n > trainingjob.MostDisruptions {
		t.all = slices.Delete(t.all, 0, n-trainingjob.MostDisruptions)
	}
}

// open is the newest disruption that is not recovered; nil without one.
func (t *Tracker) open() *record {
	for i := len(t.all) - 1; i >= 0; i-- {
		if t.all[i].Recovered == nil {
			return &t.all[i]
		}
	}
	return nil
}

// lose charges a time in which no new step was computed.
func (t *Tracker) lose(d time.Duration) {
	if r := t.open(); r != nil && d > 0 {
		r.LostSeconds += d.Seconds()
		t.sum.LostSeconds += d.Seconds()
	}
}

// Observe takes a status with its goodput phase, which holds from then on. It returns the disruptions that are
// recovered by it.
func (t *Tracker) Observe(at time.Time, s trainingjob.Status) (recovered []trainingjob.Disruption) {
	if at.Before(t.at) {
		at = t.at // a clock that is set back
	}
	if idle(t.phase) {
		t.lose(at.Sub(t.at))
	}
	t.at, t.status, t.phase = at, s, ""
	if s.GoodputSplit != nil {
		t.phase = s.GoodputSplit.Phase
	}
	t.noteReady(readyWorkers(s))
	working := t.phase == trainingjob.GoodputComputing || t.phase == trainingjob.GoodputRecomputing
	if working && s.StepsTotal > 0 {
		t.rewind(s.StepsDone)
	}
	// A step that is done after the master was signalled to stop is no recovery: the next master's is.
	stopping := t.sum.MasterStopped && s.Phase != trainingjob.PhaseSucceeded
	for i := range t.all {
		r := &t.all[i]
		since := max(0, at.Sub(r.At).Seconds())
		r.stopped = r.stopped || !working
		r.below = r.below || len(t.ready) < r.Workers
		if r.FullSize == nil && !stopping && r.below && len(t.ready) >= r.Workers && !s.Phase.Finished() {
			r.FullSize = &since
		}
		if r.Recovered == nil && !stopping && r.recovers(s, working) {
			r.Recovered = &since
			recovered = append(recovered, r.Disruption)
		}
	}
	return recovered
}

// noteReady takes who is ready now.
func (t *Tracker) noteReady(ready map[int]bool) {
	for worker := range t.ready {
		if !ready[worker] && !t.known[worker] && !t.retired[worker] {
			t.missing = with(t.missing, worker)
		}
	}
	for worker := range ready {
		delete(t.missing, worker)
	}
	t.ready = ready
}

// rewind takes the step that work continues from: those between it and the one before are lost.
func (t *Tracker) rewind(step int64) {
	if lost := t.reached - step; lost > 0 {
		if r := t.open(); r != nil {
			r.LostSteps += lost
			t.sum.LostSteps += lost
		} else {
			t.claimless += lost
		}
	}
	t.reached = step
	if t.highest = max(t.highest, step); step == t.highest {
		t.claimless = 0
	}
}

// recovers reports whether the job is farther than it was. Of a command whose steps are not known, whether it runs
// again.
func (r *record) recovers(s trainingjob.Status, working bool) bool {
	switch {
	case s.Phase == trainingjob.PhaseSucceeded:
		return true
	case s.StepsTotal > 0:
		return s.StepsDone > r.Step
	default:
		return working && (r.stopped || s.Starts != r.starts)
	}
}

func idle(phase trainingjob.GoodputPhase) bool {
	return phase == trainingjob.GoodputWaitingForRoom || phase == trainingjob.GoodputRecovering || phase == trainingjob.GoodputRecomputing
}

func readyWorkers(s trainingjob.Status) map[int]bool {
	ready := map[int]bool{}
	for _, w := range s.Workers {
		if w.State == string(coordinator.WorkerReady) {
			ready[w.ID] = true
		}
	}
	return ready
}

func readyOf(s trainingjob.Status) int { return len(readyWorkers(s)) }

// Report is what a status says of them; nil without any. It shares nothing with t.
func (t *Tracker) Report() *trainingjob.Disruptions {
	if t.sum.Count == 0 {
		return nil
	}
	sum := t.sum
	sum.Newest = make([]trainingjob.Disruption, len(t.all))
	for i := range t.all {
		sum.Newest[i] = t.all[i].Disruption // what its pointers point at is never changed
	}
	return &sum
}

// Notice reports a disruption that is recovered.
func Notice(d trainingjob.Disruption) coordinator.Notice {
	what := cmp.Or(d.Pod, "the "+d.Role)
	took := 0.0
	if d.Recovered != nil {
		took = *d.Recovered
	}
	return coordinator.Notice{Reason: coordinator.ReasonRecovered, Message: fmt.Sprintf("training continued %.1f s after %s was %s at step %d%s; lost: %s and %.1f s",
		took, what, past(d.Kind), d.Step, d.Why(), wording.Number(int(d.LostSteps), "step"), d.LostSeconds)}
}

func past(k trainingjob.DisruptionKind) string {
	if k == trainingjob.DisruptionFailed {
		return "lost because it failed"
	}
	return string(k)
}
