// Package coordinator decides everything in a training run: which workers are members, which member computes which
// virtual worker, when a step is complete, how many worker pods there should be, and when the job is done. It is a
// state machine without I/O, clock or goroutine, in the manner of etcd-io/raft: Step takes an event and returns
// effects, time passes by Tick and Clock events, and the same core runs in the master, in the local trainer and in the
// simulator.
//
// A virtual worker is one minibatch of a step. The result of a step depends on its virtual workers alone and not on the
// workers that compute them, so the coordinator may assign, reassign and duplicate them freely:
//
//   - work.go and assignments.go: the virtual workers of a step, and which member computes each;
//   - speculation.go: backups of late work, and comparison of results that were computed twice;
//   - allreduce.go and allreduce_faults.go: steps whose gradients the workers add themselves;
//   - members.go, recovery.go and state_hash.go: bringing workers up to date, finding the newest state after a restart, and
//     comparing the states of all members;
//   - pods.go, silences.go and faults.go: worker pods, lost heartbeats, and workers that fail again and again;
//   - evaluation.go, checkpoint.go and finish.go: what happens between steps and at the end.
//
// It leaves to others: moving bytes (the sums of gradients, the state), computing hashes, creating pods and writing
// files. It imports nothing but the standard library.
package coordinator

import (
	"fmt"
	"slices"
	"time"
)

// Phase of a run, as in the job's status.
type Phase int

// The phases, in the usual order.
const (
	Waiting Phase = iota // fewer ready workers than the minimum
	Running
	Evaluating
	Saving
	CannotSave // the final model could not be written; retried
	Dismissing // everything is done; the master waits for the workers to exit
	Done
	Failed
)

func (p Phase) String() string {
	return [...]string{"Waiting", "Running", "Evaluating", "Saving", "CannotSave", "Dismissing", "Done", "Failed"}[p]
}

// In ticks of 100 ms.
const (
	saveRetryTicks = 100 // "retrying every 10 s"
	dismissTicks   = 100 // the master waits 10 s for dismissed workers
	backoffTicks   = 10  // before a failed worker is replaced: 1 s, doubling
	maxBackoff     = 600
	stopTicks      = 100 // after a stop: 10 s for the step in flight, and then 10 s for a checkpoint
)

// Coordinator is the state of a run. It is for one goroutine.
type Coordinator struct {
	cfg     Config
	phase   Phase
	reason  string        // why the run is in this phase, where a status should say so
	step    int64         // updates applied; the step being computed
	now     time.Duration // by the newest Clock event
	members map[int]*member

	work             assignments // of the current step, or of the evaluation
	workIsEvaluation bool
	evaluated        int64 // the step whose state was evaluated last; −1 for none
	previousOwners   []int // virtual worker → worker, of the step before the evaluation
	behind           bool  // the master has yet to apply several updates

	speculation speculation
	stateHashes stateHashes
	recovery    recovery
	pods        podSet
	checkpoints checkpoints
	faults      map[int]fault // by worker
	silences    silences

	allReduce         *allReduce // while the workers add gradients themselves; nil: the master adds them
	round             int64      // the newest round's number
	allReduceDisabled bool       // workers could not reach each other

	stopped    bool   // a Stop has come
	stopTimer  int    // ticks left to finish the step in flight after a stop; 0 when not stopping
	exitReason string // why the master exits once the newest state is in a checkpoint; "" while it does not
	timer      int    // ticks left of CannotSave or Dismissing, or of writing the last checkpoint
	finalHash  string

	effects []Effect
}

// New returns a coordinator at step cfg.Step. A Config that breaks its own rules is a programming error and panics.
func New(cfg Config) *Coordinator {
	if cfg.Steps < 1 || cfg.Step < 0 || cfg.Step > cfg.Steps || cfg.Min < 1 || cfg.Max < cfg.Min ||
		cfg.SilentTicks < 1 || cfg.HashEvery < 1 || cfg.MaxFailures < 1 {
		panic(fmt.Sprintf("coordinator: impossible configuration %+v", cfg))
	}
	c := &Coordinator{
		cfg:         cfg,
		step:        cfg.Step,
		members:     map[int]*member{},
		evaluated:   -1,
		speculation: speculation{current: resultHashes{step: -1}, previous: resultHashes{step: -1}},
		stateHashes: stateHashes{step: -1, trusted: cfg.Step},
		recovery:    recovery{awaited: map[int]bool{}, source: noWorker, updatesFrom: cfg.Step, masterHashStep: -1},
		pods:        podSet{byWorker: map[int]*pod{}, lastID: cfg.LastWorkerID, min: cfg.Min, max: cfg.Max},
		checkpoints: checkpoints{newest: cfg.Step},
		faults:      map[int]fault{},
		silences:    silences{away: map[int]bool{}, workers: map[int]bool{}},
		round:       cfg.FirstRound,
	}
	if cfg.MinPodsExternal {
		c.pods.lastID = max(c.pods.lastID, cfg.Min-1)
	}
	return c
}

// Step takes one event and returns what has to be done about it, in order. The slice is valid until the next call.
//
// Each event changes the facts that it reports; the reconcile functions after the switch then derive what follows from
// all facts together. So no event needs to know what others were waiting for it.
func (c *Coordinator) Step(e Event) []Effect {
	c.effects = c.effects[:0]
	before := c.phase
	switch e := e.(type) {
	case Start:
		c.pods.started = true
		c.awaitHellos()
		c.beginStep()
	case Hello:
		c.hello(e)
	case Applied:
		c.applied(e)
	case Gradient:
		c.gradient(e)
	case EvaluationPart:
		c.evaluationPart(e)
	case Unreachable:
		c.unreachable(e)
	case Leaving:
		c.leavingAfterStep(e)
	case Left:
		c.remove(e.Worker, "left")
	case Lost:
		if e.Fault {
			c.recordFault(e.Worker, e.Reason)
		}
		c.remove(e.Worker, e.Reason)
	case Overflow:
		c.overflow(e.Worker)
	case Behind:
		c.behind = e.Is
	case StateHash:
		c.stateHash(e)
	case StateFetched:
		c.stateFetched(e)
	case PodChanged:
		c.podChanged(e)
	case Resize:
		c.resize(e)
	case CheckpointRequested:
		c.checkpointRequested()
	case CheckpointWritten:
		c.checkpointWritten(e)
	case CheckpointNotWritten:
		c.checkpointNotWritten(e)
	case ModelSaved:
		c.modelSaved(e)
	case ModelNotSaved:
		c.modelNotSaved(e)
	case Unhealthy:
		c.fail(e.Reason)
	case Fenced:
		c.exit(Done, ExitInterrupted, e.Reason)
	case Stop:
		c.stop(e)
	case Tick:
		c.tick(e)
	case Clock:
		c.clock(e.At)
	default:
		panic(fmt.Sprintf("coordinator: unknown event %T", e))
	}
	c.assignBackups()
	c.completeStep()
	c.reconcileAllReduce()
	c.reconcileState()
	c.reconcilePhase()
	c.reconcilePods()
	if c.phase != before && c.phase < Done { // exit has reported the others
		c.emit(Report{})
	}
	return c.effects
}

func (c *Coordinator) emit(e Effect) { c.effects = append(c.effects, e) }

// exit ends the master in phase Done or Failed, after a last status.
func (c *Coordinator) exit(phase Phase, code int, reason string) {
	c.phase = phase
	c.emit(Report{})
	c.emit(Exit{Code: code, Reason: reason})
}

// tick counts missed heartbeats, back-offs and deadlines.
func (c *Coordinator) tick(e Tick) {
	for _, id := range e.Heard {
		if m := c.members[id]; m != nil {
			m.silentTicks = 0
		}
	}
	if e.Late {
		c.restartDeadlines()
	}
	var silent []int
	for _, id := range sortedKeys(c.members) {
		m := c.members[id]
		if e.Late {
			m.silentTicks = 0
			continue
		}
		m.silentTicks++
		if m.silentTicks > c.cfg.SilentTicks {
			silent = append(silent, id)
		}
	}
	c.removeSilent(silent)
	c.tickSilences()
	c.tickAllReduce()
	if c.recovery.timer > 0 {
		if c.recovery.timer--; c.recovery.timer == 0 {
			clear(c.recovery.awaited)
		}
	}
	if c.pods.backoff > 0 {
		c.pods.backoff--
	}
	if c.stopTimer > 0 {
		if c.stopTimer--; c.stopTimer == 0 && c.training() {
			c.exitAfterCheckpoint("stopped; the step in flight did not complete in time")
		}
	}
	if c.timer > 0 {
		if c.timer--; c.timer == 0 {
			switch {
			case c.exitReason != "":
				c.exit(Done, ExitInterrupted, c.exitReason+"; the checkpoint could not be written in time")
			case c.phase == CannotSave:
				c.save()
			case c.phase == Dismissing:
				c.done()
			}
		}
	}
}

// training reports whether steps are still being computed.
func (c *Coordinator) training() bool { return c.phase == Waiting || c.phase == Running }

// finished reports whether the result is decided, so that joining, lost and resized workers no longer matter.
func (c *Coordinator) finished() bool { return c.phase >= Saving }

// reconcilePhase moves between Waiting and Running, and assigns unassigned work as soon as the minimum is met.
func (c *Coordinator) reconcilePhase() {
	if c.phase > Evaluating || c.exitReason != "" {
		return
	}
	if c.stopped && c.phase == Evaluating { // the step in flight was the last one: no part of the evaluation is assigned
		c.exitUnfinished()
		return
	}
	if c.stopTimer > 0 && len(c.ready()) == 0 {
		c.stopTimer = 0
		c.exitAfterCheckpoint("stopped; no worker is left to complete the step in flight")
		return
	}
	enough := c.canAssign()
	if enough {
		c.assignStep()
	}
	if c.training() {
		c.phase = Waiting
		if enough || (c.stopTimer > 0 && len(c.ready()) > 0) {
			c.phase = Running
		}
	}
}

// canAssign reports whether work may be assigned: there are enough workers, and the state to continue from is known.
func (c *Coordinator) canAssign() bool {
	ready := len(c.ready())
	return ready > 0 && ready+c.slowReaders() >= c.pods.min && !c.stopped && !c.recovering()
}

// ready lists the members that can be assigned work, by number.
func (c *Coordinator) ready() []int {
	var ids []int
	for id, m := range c.members {
		if m.ready {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
