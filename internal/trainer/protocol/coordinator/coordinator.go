// Package coordinator decides everything in a training run: who is a member, who computes which virtual worker,
// when a step is complete, how many worker pods there should be, and when the job is done. It is a state machine
// without I/O, clock or goroutine, in the manner of etcd-io/raft: Step takes an event and returns effects, time
// passes by Tick events, and the same core runs in the master, in the local trainer and in the simulator.
//
// It leaves to others: moving bytes (the sums of gradients, the state), computing hashes, creating pods and
// writing files. It imports nothing but the standard library.
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
	Waiting Phase = iota // fewer ready workers than the floor
	Running
	Evaluating
	Saving
	CannotSave // the final model could not be written; retried
	Dismissing // everything is done; workers are told and awaited
	Done
	Failed
)

func (p Phase) String() string {
	return [...]string{"Waiting", "Running", "Evaluating", "Saving", "CannotSave", "Dismissing", "Done", "Failed"}[p]
}

// In ticks of 100 ms.
const (
	saveRetryTicks = 100 // "retrying every 10 s"
	dismissTicks   = 100 // workers are awaited 10 s
	backoffTicks   = 10  // before a failed worker is replaced: 1 s, doubling
	maxBackoff     = 600
	stopTicks      = 100 // a step in hand is awaited 10 s after a stop, and then a checkpoint
)

// Coordinator is the state of a run. It is for one goroutine.
type Coordinator struct {
	cfg     Config
	phase   Phase
	step    int64 // updates applied; the step being computed
	members map[int]*member
	work    ledger // of the current step, or of the evaluation
	evals   bool   // work is the evaluation's

	now       time.Duration // as last told
	pace      pace
	answers   answers // to the current step
	earlier   answers // to the one before
	checks    []int   // virtual workers that are to be computed twice, in this step or the next one that can
	trusted   int64   // the newest step whose state all have confirmed by its hash
	evaluated int64   // the step whose state was evaluated last; −1 for none
	dealt     []int   // virtual worker → worker, of the step before the evaluation

	group    *group // while the workers add between themselves; nil: the master does
	round    int64  // the newest round's number
	starOnly bool   // workers could not reach each other

	gathering   int          // ticks left to wait for the workers of an earlier master
	awaited     map[int]bool // those that have not said hello yet
	source      int          // the member whose state is being fetched, or nobody
	history     int64        // the step from which on the updates are known
	ownHash     string       // of the master's state at ownHashStep
	ownHashStep int64

	started  bool // all pods that were there before are known
	pods     map[int]*pod
	lastID   int
	min, max int
	failures int           // workers that failed since anybody contributed anything
	repeats  int           // … since a worker did that had not before: healthy ones do not hurry what fails beside them
	backoff  int           // ticks until pods may be created again
	faults   map[int]fault // by worker
	silences silences

	votes      map[int]string // hashes of the state at voteStep, by worker; own below
	voteStep   int64
	ownVote    string
	mismatches int

	preemptions int
	stopped     bool   // we were asked to stop
	kept        int64  // the step of the newest checkpoint
	writing     bool   // a checkpoint is being written
	due         bool   // and another one is due when it is there
	leaving     string // why the master ends once the newest state is in a checkpoint; "" while it does not

	stopping  int // ticks left to finish the step in hand after a stop; 0 when not stopping
	timer     int // ticks left of CannotSave or Dismissing, or of writing the last checkpoint
	reason    string
	finalHash string

	effects []Effect
}

// New returns a coordinator at step cfg.Step. A Config that breaks its own rules is a programming error and panics.
func New(cfg Config) *Coordinator {
	if cfg.Steps < 1 || cfg.Step < 0 || cfg.Step > cfg.Steps || cfg.Min < 1 || cfg.Max < cfg.Min || cfg.SilentTicks < 1 || cfg.HashEvery < 1 || cfg.MaxFailures < 1 {
		panic(fmt.Sprintf("coordinator: impossible configuration %+v", cfg))
	}
	c := &Coordinator{
		cfg: cfg, step: cfg.Step, history: cfg.Step, kept: cfg.Step, trusted: cfg.Step, members: map[int]*member{}, pods: map[int]*pod{}, awaited: map[int]bool{}, source: nobody,
		faults: map[int]fault{}, silences: silences{away: map[int]bool{}, ofThem: map[int]bool{}},
		round: cfg.FirstRound, lastID: cfg.LastWorkerID, min: cfg.Min, max: cfg.Max, voteStep: -1, ownHashStep: -1, evaluated: -1, answers: answers{step: -1}, earlier: answers{step: -1},
	}
	if cfg.FloorIsGiven {
		c.lastID = max(c.lastID, cfg.Min-1)
	}
	return c
}

// Step takes one event and returns what has to be done about it, in order. The slice is valid until the next call.
func (c *Coordinator) Step(e Event) []Effect {
	c.effects = c.effects[:0]
	before := c.phase
	switch e := e.(type) {
	case Start:
		c.started = true
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
			c.blame(e.Worker, e.Reason)
		}
		c.remove(e.Worker, e.Reason)
	case Overflow:
		c.overflow(e.Worker)
	case StateHash:
		c.stateHash(e)
	case StateFetched:
		c.stateFetched(e)
	case PodChanged:
		c.podChanged(e)
	case Resize:
		c.resize(e)
	case CheckpointAsked:
		c.checkpointAsked()
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
	case GenerationLost:
		c.emit(Exit{Code: ExitInterrupted, Reason: e.Reason})
		c.phase = Done
	case Stop:
		c.stop(e)
	case Tick:
		c.tick(e)
	case Clock:
		c.clock(e.At)
	default:
		panic(fmt.Sprintf("coordinator: unknown event %T", e))
	}
	c.dealSeconds()
	c.completeStep()
	c.settleGroup()
	c.settleState()
	c.settlePhase()
	c.reconcilePods()
	if c.phase != before {
		c.report()
	}
	return c.effects
}

// report asks for a status, before an Exit that ends everything.
func (c *Coordinator) report() {
	c.emit(Report{})
	if n := len(c.effects); n > 1 {
		if exit, ok := c.effects[n-2].(Exit); ok {
			c.effects[n-2], c.effects[n-1] = Report{}, exit
		}
	}
}

func (c *Coordinator) emit(e Effect) { c.effects = append(c.effects, e) }

// tick counts silence, back-offs and deadlines.
func (c *Coordinator) tick(e Tick) {
	for _, id := range e.Heard {
		if m := c.members[id]; m != nil {
			m.silent = 0
		}
	}
	if e.Late {
		c.forgiveLateness()
	}
	var silent []int
	for _, id := range sortedKeys(c.members) {
		m := c.members[id]
		if e.Late {
			m.silent = 0
			continue
		}
		m.silent++
		if m.silent > c.cfg.SilentTicks {
			silent = append(silent, id)
		}
	}
	c.fellSilent(silent)
	c.tickSilences()
	c.tickGroup()
	if c.gathering > 0 {
		if c.gathering--; c.gathering == 0 {
			clear(c.awaited)
		}
	}
	if c.backoff > 0 {
		c.backoff--
	}
	if c.stopping > 0 {
		if c.stopping--; c.stopping == 0 && c.training() {
			c.leave("stopped; the step in hand did not complete in time")
		}
	}
	if c.timer > 0 {
		if c.timer--; c.timer == 0 {
			switch {
			case c.leaving != "":
				c.exit(c.leaving + "; the checkpoint could not be written in time")
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

// finished reports whether the result is decided, so that joining, losing and resizing change nothing any more.
func (c *Coordinator) finished() bool { return c.phase >= Saving }

// settlePhase moves between Waiting and Running, and deals what nobody computes as soon as the floor is met.
func (c *Coordinator) settlePhase() {
	if c.phase > Evaluating || c.leaving != "" {
		return
	}
	if c.stopping > 0 && len(c.ready()) == 0 {
		c.stopping = 0
		c.leave("stopped; nobody is left to complete the step in hand")
		return
	}
	enough := c.enough()
	if enough {
		c.dealStep()
	}
	if c.training() {
		c.phase = Waiting
		if enough || (c.stopping > 0 && len(c.ready()) > 0) {
			c.phase = Running
		}
	}
}

// enough reports whether work may be dealt: the floor is there, and it is clear what is computed next.
func (c *Coordinator) enough() bool {
	ready := len(c.ready())
	return ready > 0 && ready+c.slowReaders() >= c.min && !c.stopped && !c.unsettled()
}

// ready lists the members that can be dealt work, by number.
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
