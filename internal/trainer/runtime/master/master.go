// Package master runs a training job: it passes events (streams, pods, time, signals) to the coordinator and
// carries out its effects. It holds the state, adds the gradients along the tree, and writes the result.
//
// One goroutine owns everything but the state; other goroutines serve streams, files and the API server, or work on the
// state (keeper), and communicate with it through channels. Launcher, Fence and Reporter abstract from where workers run (pods or local processes), how a
// second master is fenced off, and where the status goes.
package master

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/gradient"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/nn"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/history"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/reduce"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire/wirepb"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/job"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/worker"
)

// Launcher starts and ends workers. Its methods return at once; PodChanged events from Events report what happens to a
// worker. A worker that cannot be started stays pending, with the reason, and is retried.
type Launcher interface {
	Create(worker int, minimum bool)
	Delete(worker int)
	Events() <-chan coordinator.Event // PodChanged and Resize
}

// Fence keeps every other master of the job away while this one runs.
type Fence interface {
	Generation() int64
	// Lost delivers the reason, once, when another master has taken over.
	Lost() <-chan string
	// Check returns an error if this master is known to have lost the job.
	Check(ctx context.Context) error
}

// Reporter publishes the status and the notices of the job. Its methods return at once.
type Reporter interface {
	Status(s trainingjob.Status)
	Notice(n coordinator.Notice)
}

// Config is the configuration of a master.
type Config struct {
	Job         *job.Job
	JobJSON     []byte // the job as workers load it
	ModelName   string // of the model file, for messages
	Min, Max    int
	Queued      bool // Kueue admits the minimum's workers with this master; their own Job creates them
	LastWorker  int  // the highest worker number ever used, −1 for none
	Existing    []coordinator.PodChanged
	Listener    net.Listener
	Credentials wire.Credentials
	Launcher    Launcher
	Fence       Fence
	Reporter    Reporter
	History     *history.Recorder // of the job, see Record, for observers; nil without any
	Store       Store
	Log         *slog.Logger
	// Silence is how long a worker may send nothing before it counts as lost. 0 is the default of the job's kind, which
	// suits a data centre.
	Silence time.Duration
	// Hash identifies a state, as workers do; nil is worker.Hash.
	Hash func(state []float32) string
}

// SilentTicks is Silence in ticks, or usual without it.
func (c Config) SilentTicks(usual int) int {
	if c.Silence == 0 {
		return usual
	}
	return max(1, int(c.Silence/tick))
}

// Times and counts that suit a data centre; see protocol.md for what follows from them.
const (
	tick            = 100 * time.Millisecond
	lateTick        = 500 * time.Millisecond
	silentTicks     = 10
	retainedUpdates = 4
	hashEvery       = 100
	checkEvery      = 1000
	maxFailures     = 6
	queueUpdates    = 8
)

// Result is how a run ended.
type Result struct {
	Code   int // of the process
	Reason string
	Model  *ModelInfo // of a finished job
	Report string     // the path of its page; "" without one
}

// Master is a running job.
type Master struct {
	cfg     Config
	log     *slog.Logger
	network job.Network
	tables  []gradient.Table // the network's
	core    *coordinator.Coordinator

	in      chan *input
	ended   chan struct{} // closed when the loop has ended
	conns   map[int]*connection
	gaveUp  map[int]string      // the reason that a worker gave, until its pod has ended
	pending []coordinator.Event // caused by effects; they come before the next from outside
	waiting []*input            // for a hash

	keeper  *keeper // of the state
	own     ownHash
	joins   joins
	tree    *reduce.Tree
	results []nn.Result // of the current step, by virtual worker
	stats   [][]float32

	newestSaid  *wirepb.Applied // from all-reduce
	updates     []update        // the newest, oldest first
	buffers     *wire.Buffers
	evaluations evaluations

	last          nn.Result // of the last step
	published     *Publisher
	began         time.Time
	info          *ModelInfo
	finished      *ModelInfo // the model of an earlier run of the job, to be evaluated on other data; nil for none
	unfit         string     // why the final model cannot be saved
	saved         chan savedModel
	kept          int64   // the step of the newest checkpoint
	written       []int64 // the steps of the checkpoints of this master
	withdrawAfter *int64  // checkpoints after this step must not be resumed from
	checkpointed  chan writtenCheckpoint
	writer        writer
	streams       sync.WaitGroup // their goroutines
	result        *Result
}

// update is a published update: the sum of the gradients, every virtual worker's statistics, then the rows of
// the embedding tables, packed.
type update struct {
	step     int64
	floats   []float32
	rows     []int32 // how many of each table
	measured *wirepb.Measured
}

// StoppedError is the cause of Run's context if the reason for stopping is known.
type StoppedError coordinator.Stop

func (e StoppedError) Error() string { return e.Cause.String() }

// Run trains until the job is done, has failed, or ctx ends (SIGTERM, with StoppedError as its cause where more is
// known). An error means that the master could not run at all.
func Run(ctx context.Context, cfg Config) (Result, error) {
	if cfg.History == nil {
		cfg.History = Record(cfg.Job)
	}
	m := &Master{
		cfg: cfg, published: NewPublisher(cfg), log: cfg.Log, network: cfg.Job.Network, in: make(chan *input, 64),
		ended: make(chan struct{}), conns: map[int]*connection{}, gaveUp: map[int]string{}, own: ownHash{step: -1, requested: -1},
		saved: make(chan savedModel, 1), checkpointed: make(chan writtenCheckpoint, 1), began: time.Now(),
	}
	m.writer.ctx, m.writer.giveUp = context.WithCancel(context.WithoutCancel(ctx))
	defer m.writer.giveUp()
	var err error
	if m.finished, err = cfg.Store.Finished(cfg.Job.Identity.Job); err != nil {
		return Result{}, errors.Join(err, cfg.Listener.Close())
	}
	if m.finished != nil && m.isEvaluated(m.finished) {
		return m.alreadyDone(ctx)
	}
	if err := m.prepare(); err != nil {
		return Result{}, errors.Join(err, cfg.Listener.Close())
	}
	if m.finished != nil {
		if reason := m.cannotEvaluateFinished(); reason != "" {
			return m.notEvaluated(ctx, reason)
		}
	}
	server, err := wire.NewServer(cfg.Credentials, m.log, m.serve, wire.CountBytes(&cfg.History.Received, &cfg.History.Sent))
	if err != nil {
		return Result{}, errors.Join(err, cfg.Listener.Close())
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(cfg.Listener) }()
	m.loop(ctx, served)
	close(m.ended)
	if m.result.Code != coordinator.ExitDone {
		m.writer.giveUp() // otherwise the last checkpoint may still be in flight
	}
	server.Stop(closeTimeout)
	m.streams.Wait()
	m.keeper.running.Wait()
	m.writer.running.Wait()
	m.withdraw(ctx)
	m.result.Report = SaveReport(ctx, cfg, m.result.Reason)
	return *m.result, nil
}

// prepare makes the initial state of the run, from the newest checkpoint or that of step 0, and the coordinator.
func (m *Master) prepare() error {
	j := m.cfg.Job
	k := j.Spec.Training.GradsToWait
	state := make([]float32, m.network.StateSize())
	m.network.Init(state, j.Spec.Training.Seed)
	m.tables = m.network.Tables()
	m.buffers = wire.NewBuffers(m.network.TrainableSize() + k*m.network.StatsSize() + gradient.LongestPacked(m.tables, k*j.Spec.Training.MinibatchSize))
	m.tree = reduce.NewTree(j.Kernel.Add, func(s gradient.Sum) { m.buffers.Put(s.Dense) })
	m.results = make([]nn.Result, k)
	m.stats = make([][]float32, k)
	for v := range m.stats {
		m.stats[v] = make([]float32, m.network.StatsSize())
	}
	m.evaluations.parts = make([]nn.Result, len(j.Parts))
	size, err := m.modelBytes(state)
	if err != nil {
		return err
	}
	step, state := m.resumeFromCheckpoint(state)
	hash := m.cfg.Hash
	if hash == nil {
		hash = worker.Hash
	}
	m.keeper = newKeeper(m.network, hash, m.ended, step, state)
	m.resetTree(step)
	m.core = coordinator.New(coordinator.Config{
		Steps: j.Schedule.Steps(), Step: step, CheckpointEvery: m.checkpointEvery(4 * m.network.StateSize()), Minibatches: j.Schedule.Minibatches, EvaluationParts: len(j.Parts),
		EvaluatesAt: func(step int64) bool { return j.Spec.Evaluation.Due(step, j.Schedule.StepsPerEpoch()) },
		Identity:    j.Identity, Restarted: m.cfg.Fence.Generation() > 1, Approximate: len(j.Spec.Command) > 0, Min: m.cfg.Min, Max: m.cfg.Max, MinPodsExternal: m.cfg.Queued, LastWorkerID: m.cfg.LastWorker,
		AllReduce: m.allReduce(), FirstRound: worker.FirstRound(m.cfg.Fence.Generation()), SilentTicks: m.cfg.SilentTicks(silentTicks), RetainedUpdates: retainedUpdates, HashEvery: hashEvery, CheckEvery: checkEvery, MaxFailures: maxFailures,
	})
	if err := m.cfg.Store.Fits(size); err != nil {
		m.unfit = err.Error()
	}
	return nil
}

// loop runs in the one goroutine that owns the job.
func (m *Master) loop(ctx context.Context, served <-chan error) {
	for _, e := range m.cfg.Existing {
		m.step(e)
	}
	if m.unfit != "" {
		m.step(coordinator.Unhealthy{Reason: m.unfit})
	}
	m.step(coordinator.Start{})
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	alarm := time.NewTimer(time.Hour)
	defer alarm.Stop()
	last := time.Now()
	stop := ctx.Done()
	for m.result == nil {
		m.setAlarm(alarm)
		select {
		case <-alarm.C:
			m.step(m.clock())
		case i := <-m.in:
			m.take(i)
		case then := <-m.keeper.results:
			then()
			m.resume()
		case <-m.keeper.freed:
			m.versionFreed()
		case e := <-m.cfg.Launcher.Events():
			m.step(m.withGaveUpReason(e))
		case <-ticker.C:
			now := time.Now() // the ticker's own time is when it was due
			m.step(coordinator.Tick{Heard: wire.Beat(m.conns, m.cfg.Fence.Generation()), Late: now.Sub(last) > tick+lateTick})
			last = now
			m.endStalled()
			m.cfg.History.Tick()
			m.published.Publish(false, m.status)
		case w := <-m.checkpointed:
			m.checkpointWritten(w)
		case s := <-m.saved:
			m.modelSaved(s)
		case reason := <-m.cfg.Fence.Lost():
			m.step(coordinator.Fenced{Reason: reason})
		case err := <-served:
			m.step(coordinator.Unhealthy{Reason: fmt.Sprintf("the master's server ended: %v", err)})
		case <-stop:
			stop = nil
			m.log.Info("asked to stop; the step in flight is published first", "step", m.core.StepsDone())
			var why StoppedError // zero if unknown
			errors.As(context.Cause(ctx), &why)
			m.step(coordinator.Stop(why))
		}
	}
}

// clock is the time, for the coordinator.
func (m *Master) clock() coordinator.Event { return coordinator.Clock{At: time.Since(m.began)} }

// setAlarm sets a timer for when the coordinator needs the next Clock event.
func (m *Master) setAlarm(t *time.Timer) {
	if at, ok := m.core.Deadline(); ok {
		t.Reset(at - time.Since(m.began))
	} else {
		t.Stop()
	}
}

// step passes an event to the coordinator and carries out the effects, and the events that follow from these.
func (m *Master) step(e coordinator.Event) {
	m.pending = append(m.pending, m.clock(), e)
	for len(m.pending) > 0 && m.result == nil {
		e := m.pending[0]
		m.pending = m.pending[1:]
		m.cfg.History.OnEvent(e)
		for _, effect := range m.core.Step(e) {
			m.do(effect)
		}
		m.published.Changed()
	}
}

// closeTimeout is how long streams may take to end when the master ends.
const closeTimeout = 2 * time.Second
