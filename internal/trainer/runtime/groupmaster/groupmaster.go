// Package groupmaster runs a job whose script exchanges gradients with collectives of its own: it passes events (streams,
// pods, time, signals) to package group and carries out the effects. It is the control plane only: no tensor passes
// through it, and it starts no script.
//
// It takes the same configuration as package master and reports in the same way, so that the same launchers, fences,
// reporters and pages serve both. As there, one goroutine owns everything, and others communicate with it through channels.
package groupmaster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/history"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/group"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/master"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/torchrun"
)

// Times and counts that suit a data centre; group.Config says what each is for.
const (
	tick          = 100 * time.Millisecond
	lateTick      = 500 * time.Millisecond
	silentTicks   = 10
	gather        = 3 * time.Second
	joinInterval  = 2 * time.Second
	settle        = 200 * time.Millisecond
	idleTimeout   = 5 * time.Second
	retryInterval = time.Second
	maxFailures   = torchrun.MaxRestarts
	closeTimeout  = 2 * time.Second
)

// Times and counts of a command that is started again, whose interruption costs more than a step.
const (
	commandGather      = 15 * time.Second
	commandSilentTicks = 100
	commandIdle        = 10 * time.Minute // workers kill what does not stop; this is for workers that do not
	lastCall           = 5 * time.Second
	commandSettle      = time.Second
	reconnect          = 10 * time.Second
	stable             = 10 * time.Minute
)

// generationsOfMaster is how many process groups a master may form: the numbers of the next master's are greater.
const generationsOfMaster = 1 << 32

// Master is a running job.
type Master struct {
	cfg     master.Config
	log     *slog.Logger
	core    *group.Group
	in      chan input
	ended   chan struct{} // closed when the loop has ended
	conns   map[int]*connection
	gaveUp  map[int]string // the reason that a worker gave, until its pod has ended
	streams sync.WaitGroup

	loss      *float64 // of the last step
	published *master.Publisher
	began     time.Time
	result    *master.Result
	pending   []group.Event
}

// Run trains until the job is done, has failed, or ctx ends (SIGTERM, with master.StoppedError as its cause where more is
// known). An error means that the master could not run at all.
func Run(ctx context.Context, cfg master.Config) (master.Result, error) {
	if cfg.History == nil {
		cfg.History = master.Record(cfg.Job)
	}
	m := &Master{
		cfg: cfg, log: cfg.Log, in: make(chan input, 64), ended: make(chan struct{}), conns: map[int]*connection{},
		gaveUp: map[int]string{}, published: master.NewPublisher(cfg), began: time.Now(),
	}
	m.core = group.New(m.config())
	server, err := wire.NewServer(cfg.Credentials, m.log, m.serve, wire.CountBytes(&cfg.History.Received, &cfg.History.Sent))
	if err != nil {
		return master.Result{}, errors.Join(err, cfg.Listener.Close())
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(cfg.Listener) }()
	m.loop(ctx, served)
	close(m.ended)
	server.Stop(closeTimeout)
	m.streams.Wait()
	m.result.Report = master.SaveReport(ctx, cfg, m.result.Reason)
	return *m.result, nil
}

func (m *Master) config() group.Config {
	j, generation := m.cfg.Job, m.cfg.Fence.Generation()
	every := j.Schedule.StepsPerEpoch()
	if c := j.Spec.Checkpoint; c != nil && c.Steps > 0 {
		every = c.Steps
	}
	c := group.Config{
		Steps: j.Schedule.Steps(), Identity: j.Identity,
		Min: m.cfg.Min, Max: m.cfg.Max, Multiple: j.Spec.Multiple(), MinPodsExternal: m.cfg.Queued, LastWorkerID: m.cfg.LastWorker,
		LastGeneration: generation * generationsOfMaster, Restarted: generation > 1 && len(m.cfg.Existing) > 0, Gather: gather,
		JoinInterval: joinInterval, Settle: settle, IdleTimeout: idleTimeout, RetryInterval: retryInterval, MaxFailures: maxFailures,
		SilentTicks: m.cfg.SilentTicks(silentTicks), CheckpointEvery: every,
	}
	if j.Spec.Restarts() {
		c.Gather, c.JoinInterval, c.IdleTimeout, c.CheckpointEvery = commandGather, j.Spec.RestartInterval(), commandIdle, 0
		c.SilentTicks = m.cfg.SilentTicks(commandSilentTicks)
		c.Restart = &group.Restart{LastCall: lastCall, Settle: commandSettle, Reconnect: reconnect, Stable: stable}
	}
	return c
}

// loop runs in the one goroutine that owns the job.
func (m *Master) loop(ctx context.Context, served <-chan error) {
	for _, e := range m.cfg.Existing {
		m.step(e)
	}
	m.step(coordinator.Start{})
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	alarm := time.NewTimer(time.Hour)
	defer alarm.Stop()
	last := time.Now()
	stop := ctx.Done()
	for m.result == nil {
		if at, ok := m.core.Deadline(); ok {
			alarm.Reset(at - time.Since(m.began))
		} else {
			alarm.Stop()
		}
		select {
		case <-alarm.C:
			m.step(m.clock())
		case i := <-m.in:
			m.take(i)
		case e := <-m.cfg.Launcher.Events():
			m.step(m.withGaveUpReason(e))
		case <-ticker.C:
			now := time.Now()
			m.step(coordinator.Tick{Heard: wire.Beat(m.conns, m.cfg.Fence.Generation()), Late: now.Sub(last) > tick+lateTick})
			last = now
			m.cfg.History.Tick()
			m.published.Publish(false, m.status)
		case reason := <-m.cfg.Fence.Lost():
			m.step(coordinator.Fenced{Reason: reason})
		case err := <-served:
			m.step(coordinator.Unhealthy{Reason: fmt.Sprintf("the master's server ended: %v", err)})
		case <-stop:
			stop = nil
			m.log.Info("asked to stop; the step in flight is completed first", "step", m.core.StepsDone())
			var why master.StoppedError // zero if unknown
			errors.As(context.Cause(ctx), &why)
			m.step(coordinator.Stop(why))
		}
	}
}

// clock is the time, for the group.
func (m *Master) clock() group.Event { return coordinator.Clock{At: time.Since(m.began)} }

// step passes an event to the group and carries out the effects, and the events that follow from these.
func (m *Master) step(e group.Event) {
	m.pending = append(m.pending, m.clock(), e)
	for len(m.pending) > 0 && m.result == nil {
		e := m.pending[0]
		m.pending = m.pending[1:]
		if known, ok := e.(coordinator.Event); ok {
			m.cfg.History.OnEvent(known)
		}
		for _, effect := range m.core.Step(e) {
			m.do(effect)
		}
		m.published.Changed()
	}
}

// observe records a committed step for the status.
func (m *Master) observe(c group.Commit) {
	if c.Records > 0 {
		loss := c.LossSum / float64(c.Records)
		m.loss = &loss
	}
	m.cfg.History.OnStep(history.Step{Records: c.Records, LossSum: c.LossSum})
}
