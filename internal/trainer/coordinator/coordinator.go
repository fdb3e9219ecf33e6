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

// Config is what a coordinator knows before the first event. Counts are positive unless said otherwise.
type Config struct {
	// Steps is the number of updates of the whole job.
	Steps int64
	// Minibatches gives the number of virtual workers of a step, 0 ≤ step < Steps. It is pure, and at least 1.
	Minibatches func(step int64) int
	// Step is the number of updates in the master's own state, of a checkpoint; 0 without one. 0 ≤ Step ≤ Steps.
	Step int64
	// EvaluationParts is the number of ranges of validation data to evaluate after the last step; 0 for none.
	EvaluationParts int
	// EvaluatesAt reports whether they are evaluated besides at the state after step updates, 0 < step < Steps. It is pure;
	// nil is never.
	EvaluatesAt func(step int64) bool

	// Identity is what a worker must have in common with this job.
	Identity Identity

	// Approximate says that equal work may give other bits on other hardware: a framework's arithmetic, not ours. A state
	// that differs from the master's at the same step is then no fault, and is replaced by the master's.
	Approximate bool

	// AllReduce says whether so many workers, 2 or more, add the gradients of a step between themselves instead of at the
	// master. It is pure; nil: never.
	AllReduce func(workers int) bool
	// FirstRound is below the numbers of this master's rounds, and above those of every earlier master's.
	FirstRound int64

	// Restarted says that the job had a master before: workers that run already may hold a newer state than this one,
	// and are awaited for a moment before anything is computed.
	Restarted bool

	// Min is the floor: with fewer ready workers nothing is computed. 1 ≤ Min ≤ Max.
	Min int
	// Max is the number of worker pods that are kept alive.
	Max int
	// FloorIsGiven says that somebody else makes the floor's pods, and makes them again: under a queue they are admitted
	// together with the master. They have the numbers below Min, always the same ones, and only the pods above Min are
	// the coordinator's. Min does not change then.
	FloorIsGiven bool
	// LastWorkerID is the highest worker number ever used, −1 for none. New pods are numbered from it, or from Min on
	// where the floor is given.
	LastWorkerID int

	// SilentTicks is how many ticks without a frame make a worker lost. 10 ticks of 100 ms suit a data centre.
	SilentTicks int
	// RetainedUpdates is how many of the newest updates the master keeps for workers that are a little behind.
	RetainedUpdates int64
	// HashEvery is the number of steps between two comparisons of all members' states.
	HashEvery int64
	// CheckEvery is the number of steps in which every virtual worker is computed twice once, on purpose, by two workers
	// where there are two; 0 is never. 1000 costs a thousandth.
	CheckEvery int64
	// CheckpointEvery is the number of steps between two checkpoints; 0 when there is nowhere to write any. Besides there
	// is one after the last step, from which more epochs can follow, and one when the master is asked to stop.
	CheckpointEvery int64
	// MaxFailures is how many workers may fail one after the other, none of them contributing a gradient, before
	// the job is given up. Preempted workers do not count.
	MaxFailures int
}

// Identity is what decides that two processes compute the same thing.
type Identity struct {
	Lineage  string // decides the state at step s
	Job      string // lineage and number of epochs
	Numerics int    // version of the arithmetic
}

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
	failures int
	backoff  int // ticks until pods may be created again

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

// dealStep gives out what nobody computes, in a round where the workers add between themselves.
func (c *Coordinator) dealStep() {
	if c.group == nil && c.wantsGroup() && c.work.untouched() {
		c.form()
	}
	switch {
	case c.group == nil || !c.training():
		c.dealOrphans()
	case !c.group.running && !c.group.closing:
		c.beginRound()
	}
}

// enough reports whether work may be dealt: the floor is there, and it is clear what is computed next.
func (c *Coordinator) enough() bool {
	ready := len(c.ready())
	return ready > 0 && ready+c.slowReaders() >= c.min && !c.stopped && !c.unsettled()
}

// gradient takes the sum of some virtual workers of a step. Who computed it is of no matter.
func (c *Coordinator) gradient(e Gradient) {
	m := c.members[e.Worker]
	if m == nil || c.phase > Evaluating || c.leaving != "" || !c.compare(m, e) || e.Step != c.step || c.evals || c.group != nil || e.HashAlone {
		return // of a step that is complete: another worker was given the same work meanwhile
	}
	c.answered(m, e)
	for v := e.Lo; v < e.Hi; v++ {
		if !c.work.valid(v) {
			return
		}
	}
	if slices.Contains(c.work.done[e.Lo:e.Hi], true) { // the same bits are here already
		for v := e.Lo; v < e.Hi; v++ {
			c.work.relinquish(v, e.Worker) // what else is in the sum cannot be had from it
		}
		return
	}
	for v := e.Lo; v < e.Hi; v++ {
		c.work.finish(v)
		m.gradients++
	}
	if m.unchecked < 0 {
		m.unchecked = e.Step
	}
	c.failures = 0
	c.emit(Accept{Worker: e.Worker, Step: e.Step, Lo: e.Lo, Hi: e.Hi})
}

// completeStep publishes the update of the current step, once all of it is there, together with what everybody computes
// next.
func (c *Coordinator) completeStep() {
	if !c.training() || c.leaving != "" || !c.work.complete() || c.awaitsSecond() {
		return
	}
	c.endHands()
	done := c.step
	c.step++
	every := c.cfg.CheckpointEvery
	checkpoint := every > 0 && c.step%every == 0
	publish := Publish{Step: done, Hash: (checkpoint || c.step%c.cfg.HashEvery == 0) && c.step < c.cfg.Steps}
	if publish.Hash {
		c.openVote(c.step)
	}
	for _, m := range c.members {
		if m.ready {
			m.step = c.step // by the time it can answer, it has applied it
		}
	}
	if c.step < c.cfg.Steps {
		previous := c.work.owner
		c.beginStep()
		if !c.evals && c.enough() && !c.wantsGroup() {
			publish.Next = deal(len(c.work.owner), c.dealable(), previous)
			c.work.assign(publish.Next)
			for id, vs := range publish.Next {
				c.members[id].hand.add(c.now, vs)
			}
		}
		c.emit(publish)
		if c.stopping > 0 {
			c.stopping = 0
			c.leave("stopped after the step in hand")
		} else if checkpoint {
			c.checkpoint()
		}
		return
	}
	c.emit(publish)
	c.checkpoint()
	c.beginStep()
}

// dealOrphans gives work of the current step that nobody has to the ready members: what one of them has computed already to
// that one, and the rest evenly.
func (c *Coordinator) dealOrphans() {
	ready := c.dealable()
	if len(ready) == 0 || !c.work.hasOrphans() {
		return
	}
	reclaimed := map[int][]int{}
	for _, w := range ready {
		if m := c.members[w]; !c.evals && m.inHandOf == c.step {
			reclaimed[w] = c.work.reclaim(w, m.inHand)
			m.inHand = nil
		}
	}
	given := c.work.dealOrphans(ready)
	for w, vs := range reclaimed {
		given[w] = append(vs, given[w]...)
	}
	for _, w := range ready {
		if len(given[w]) == 0 {
			continue
		}
		if c.evals {
			c.emit(Evaluate{Worker: w, Step: c.step, Parts: given[w]})
		} else {
			c.members[w].hand.add(c.now, given[w])
			c.emit(Assign{Worker: w, Step: c.step, VirtualWorkers: given[w]})
		}
	}
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
