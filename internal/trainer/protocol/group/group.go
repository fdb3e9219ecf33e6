// Package group decides about a training job whose script exchanges gradients with collectives of its own: which
// workers form the process group, with which ranks, when a step counts, and when the group is formed anew. It is a
// state machine without I/O, clock or goroutine, as package coordinator is: Step takes an event and returns effects.
//
// A generation is one process group: members with ranks, the store at which they meet, and the step that they compute
// first. In each step every rank computes its share of the virtual workers (Share), the group adds the gradients, and
// each rank reports Reduced. When all have, the step is committed: Commit goes to all, and only then does each rank
// apply the gradient. Before the commit a lost member ends the generation (Abort), and the next one computes the same
// step. After it a lost member does not matter to the others, because they all hold the sum. So members never differ by
// a step, and each record counts exactly when its step is committed.
//
//   - generation.go: how generations begin, commit and end;
//   - members.go: workers that are ready, idle, leaving, silent or lost;
//   - keep.go: checkpoints without which a state would be lost;
//   - pods.go: worker pods;
//   - restart.go: jobs whose command is started again when members change;
//   - finish.go: the end of the job, and of the master.
//
// It leaves to others: the state of the model, which members broadcast among themselves; records, which package
// schedule derives from a step's number; and pods, messages and checkpoints.
//
// Pods, time and the master's own end are as in package coordinator, whose events and effects are used for them.
package group

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
)

// Config is what a group knows before the first event. Counts are positive unless stated otherwise.
type Config struct {
	// Steps is the number of steps of the whole job.
	Steps int64
	// Identity is what a worker must have in common with this job.
	Identity coordinator.Identity

	// Min is the least number of members of a generation. 1 ≤ Min ≤ Max.
	Min int
	// Max is the largest number of members, and of worker pods that are kept alive.
	Max int
	// Multiple is a number that divides the number of members of every generation; Min is a multiple of it. 1 allows any
	// number.
	Multiple int
	// MinPodsExternal means that somebody else creates the pods of the minimum, which have the numbers below Min; see
	// coordinator.Config.
	MinPodsExternal bool
	// LastWorkerID is the highest worker number ever used, −1 for none.
	LastWorkerID int

	// LastGeneration is smaller than the numbers of this master's generations, and not smaller than those of every earlier
	// master.
	LastGeneration int64

	// Restarted means that the job had a master before. Workers that run already may hold a newer state than any
	// checkpoint, so the first generation begins Gather after the first event.
	Restarted bool
	// Gather is how long a restarted master waits for the workers that run already. 3 s suit workers that try again every
	// second.
	Gather time.Duration

	// JoinInterval is the least age of a generation that ends because a worker joins: each new generation costs all
	// members a rendezvous and a broadcast. 2 s batch the workers of a job that grows. Workers that leave do not wait.
	JoinInterval time.Duration
	// Settle is how long the group waits for the reason when a member reports a failed collective: the loss of another
	// member is usually known a moment later. 200 ms suit a data centre.
	Settle time.Duration
	// IdleTimeout is how long the next generation waits for members of an aborted one that still compute. Those that are
	// later join later. 5 s.
	IdleTimeout time.Duration
	// RetryInterval is the pause after the second generation in a row that ended with a failed collective whose cause is
	// not known; it doubles with each further one, up to a minute. 1 s.
	RetryInterval time.Duration
	// MaxFailures is how many such generations may end one after the other, or workers fail, without a commit, before the
	// job fails. Lost and preempted workers, and collectives that fail because of them, do not count.
	MaxFailures int

	// SilentTicks is the number of ticks without a frame after which a worker is lost; see coordinator.Config.
	SilentTicks int
	// Restart is set where the script is a command that is started again when its members change; Steps is 1.
	Restart *Restart

	// CheckpointEvery is the number of steps between two checkpoints; 0: none but the last, and the one when the master
	// stops.
	CheckpointEvery int64
}

// Group is the state of a run. It is for one goroutine.
type Group struct {
	cfg    Config
	phase  coordinator.Phase
	reason string
	now    time.Duration
	step   int64 // steps committed

	started bool
	gather  time.Duration // no generation begins before
	members map[int]*member

	current   *generation   // nil between two
	number    int64         // of the newest generation
	earliest  time.Duration // no generation begins before
	unwindBy  time.Duration // until when the next one waits for members of an aborted one; 0: there was none
	lastCall  time.Duration // until when it waits for more members; 0: it does not
	broken    int           // generations that ended with a failed collective, one after the other, without a known cause
	failed    int64         // the newest of them; 0 once its cause is known
	failedHow string
	newest    int64 // the step of the newest checkpoint that was reported
	written   int64 // of the newest that was reported to this master as written: a Ready may have been sent before

	pods pods

	keeper   int // the worker that writes a checkpoint so that others may go; noWorker while there is none
	saver    int // the worker that finishes the job; noWorker while there is none
	stopped  bool
	stopBy   time.Duration
	stopWhy  string
	replaced bool          // stopped because another master takes over
	over     time.Duration // when the master stops waiting for workers that are finishing; 0: it does not wait

	effects []Effect
}

const noWorker = -1

// Times of the end of a run, as in the coordinator.
const (
	stopPatience   = 10 * time.Second // for the step in flight and its checkpoint, after a stop
	finishPatience = 30 * time.Second // for the other workers' scripts, once the first has finished
)

// New returns a group before its first event. A Config that breaks its own rules is a programming error and panics.
func New(cfg Config) *Group {
	if cfg.Steps < 1 || cfg.Multiple < 1 || cfg.Min < 1 || cfg.Max < cfg.Min || cfg.Min%cfg.Multiple != 0 ||
		cfg.SilentTicks < 1 || cfg.MaxFailures < 1 || cfg.RetryInterval <= 0 || cfg.Restart != nil && cfg.Steps != 1 {
		panic(fmt.Sprintf("group: impossible configuration %+v", cfg))
	}
	g := &Group{
		cfg:     cfg,
		number:  cfg.LastGeneration,
		members: map[int]*member{},
		pods:    pods{byWorker: map[int]*pod{}, lastID: cfg.LastWorkerID, min: cfg.Min, max: cfg.Max},
		written: NoState,
		keeper:  noWorker,
		saver:   noWorker,
	}
	if cfg.MinPodsExternal {
		g.pods.lastID = max(g.pods.lastID, cfg.Min-1)
	}
	return g
}

// Step takes one event and returns what has to be done about it, in order. The slice is valid until the next call.
//
// Each event changes the facts that it reports; the reconcile functions after the switch derive what follows from all
// of them together.
func (g *Group) Step(e Event) []Effect {
	g.effects = g.effects[:0]
	if g.ended() {
		return nil
	}
	before := g.phase
	switch e := e.(type) {
	case coordinator.Clock:
		g.now = max(g.now, e.At)
	case coordinator.Start:
		g.started, g.pods.started = true, true
		if g.cfg.Restarted {
			g.gather = g.now + g.cfg.Gather
		}
	case Ready:
		g.ready(e)
	case Idle:
		g.idle(e)
	case Reduced:
		g.reduced(e)
	case Saved:
		g.saved(e)
	case Finished:
		g.finished(e)
	case coordinator.Leaving:
		g.leaving(e.Worker)
	case coordinator.Left:
		g.remove(e.Worker, "left")
	case coordinator.Lost:
		g.lost(e)
	case coordinator.PodChanged:
		g.podChanged(e)
	case coordinator.Resize:
		g.resize(e)
	case coordinator.Unhealthy:
		g.fail(e.Reason)
	case coordinator.Fenced:
		g.exit(coordinator.Done, coordinator.ExitInterrupted, e.Reason)
	case coordinator.Stop:
		g.stop(e)
	case coordinator.Tick:
		g.tick(e)
	default:
		panic(fmt.Sprintf("group: unknown event %T", e))
	}
	g.reconcileRestart()
	g.reconcileKeeping()
	g.reconcileGeneration()
	g.reconcileFinish()
	g.reconcilePhase()
	g.reconcilePods()
	if g.phase != before && g.phase < coordinator.Done { // exit has reported the others
		g.emit(coordinator.Report{})
	}
	return g.effects
}

// Deadline is when the next Clock event is needed, if nothing else happens before.
func (g *Group) Deadline() (at time.Duration, ok bool) {
	times := []time.Duration{g.gather, g.earliest, g.unwindBy, g.lastCall, g.pods.retryAt, g.stopBy, g.over}
	if g.cfg.Restart != nil {
		times = append(times, g.joinAt())
		for _, m := range g.members {
			times = append(times, m.away)
		}
	}
	for _, t := range times {
		if t > g.now && (!ok || t < at) {
			at, ok = t, true
		}
	}
	return at, ok
}

// StepsDone is the number of steps committed.
func (g *Group) StepsDone() int64 { return g.step }

// Share is the virtual workers lo ≤ v < hi, of n in a step, that a rank computes. Shares differ by at most one; with
// more ranks than virtual workers some are empty.
func Share(n, world, rank int) (lo, hi int) { return rank * n / world, (rank + 1) * n / world }

// ended reports whether the master has been instructed to exit.
func (g *Group) ended() bool { return g.phase >= coordinator.Done }

func (g *Group) emit(e Effect) { g.effects = append(g.effects, e) }

func (g *Group) notice(warning bool, reason, format string, args ...any) {
	g.emit(coordinator.Notice{Warning: warning, Reason: reason, Message: fmt.Sprintf(format, args...)})
}

// reconcilePhase derives the phase that users see.
func (g *Group) reconcilePhase() {
	switch {
	case g.ended():
	case g.step >= g.cfg.Steps:
		g.phase = coordinator.Saving
	case g.current != nil:
		g.phase = coordinator.Running
	case !g.canFormGroup(): // otherwise the next generation is a moment away
		g.phase = coordinator.Waiting
	}
}

// canFormGroup reports whether there are enough workers for a generation, now or when they have left the one before.
func (g *Group) canFormGroup() bool {
	n := 0
	for _, m := range g.members {
		if m.eligible() || m.unwinding && !m.leaving {
			n++
		}
	}
	return g.world(n) > 0
}

func sorted[T any](m map[int]T) []int { return slices.Sorted(maps.Keys(m)) }
