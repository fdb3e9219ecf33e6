package master

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/gradient"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/nn"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire/wirepb"
)

// do carries out one effect.
func (m *Master) do(e coordinator.Effect) {
	switch e := e.(type) {
	case coordinator.Accept:
		m.accept(e.Payload.(*receivedGradient))
	case coordinator.AcceptEvaluation:
		m.evaluations.parts[e.Part] = e.Payload.(nn.Result)
	case coordinator.Evaluated:
		m.evaluated(e.Step)
	case coordinator.Publish:
		m.publish(e)
	case coordinator.Round:
		m.beginRound(e)
	case coordinator.Relay:
		m.relay(e)
	case coordinator.Advance:
		m.advance(e.Step)
	case coordinator.Assign:
		if c := m.conns[e.Worker]; c != nil {
			c.Queue.Send(&wirepb.Message{Kind: &wirepb.Message_Assign{Assign: &wirepb.Assign{Step: e.Step, VirtualWorkers: narrow(e.VirtualWorkers)}}})
		}
	case coordinator.Evaluate:
		m.evaluate(e)
	case coordinator.SendState:
		m.sendState(e.Worker)
	case coordinator.SendUpdates:
		m.sendUpdates(e.Worker, e.From)
	case coordinator.Subscribe:
		if c := m.conns[e.Worker]; c != nil {
			c.follows = everything
		}
	case coordinator.FetchState:
		if c := m.conns[e.Worker]; c != nil {
			c.fetching.Store(true)
			c.Queue.Send(&wirepb.Message{Kind: &wirepb.Message_Fetch{Fetch: &wirepb.Fetch{}}})
		}
	case coordinator.AdoptState:
		m.adoptState(e.Step, e.Hash, e.Payload.(fetchedState))
	case coordinator.Refuse:
		if c := m.conns[e.Worker]; c != nil {
			m.log.Warn("rejected a worker", "worker", e.Worker, "node", c.Node, "reason", e.Reason)
			m.refuse(c, e.Reason)
		}
	case coordinator.Disconnect:
		if c := m.conns[e.Worker]; c != nil {
			m.log.Debug("disconnected a worker", "worker", e.Worker, "node", c.Node, "reason", e.Reason)
			m.cfg.History.OnEvent(coordinator.Lost{Worker: e.Worker, Reason: e.Reason}) // the end of the stream is not reported again
			c.closing, c.follows = true, nothing
			c.End(errors.New(e.Reason))
		}
	case coordinator.Dismiss:
		if c := m.conns[e.Worker]; c != nil {
			c.closing = true
			c.Queue.Send(&wirepb.Message{Kind: &wirepb.Message_Dismissal{Dismissal: &wirepb.Dismissal{Reason: "finished"}}})
			c.Queue.Close()
		}
	case coordinator.CreatePod:
		m.cfg.Launcher.Create(e.Worker, e.Minimum)
	case coordinator.DeletePod:
		m.log.Info("ending a worker", "worker", e.Worker, "reason", e.Reason)
		m.cfg.History.OnRetire(e.Worker)
		m.cfg.Launcher.Delete(e.Worker)
	case coordinator.Checkpoint:
		m.checkpoint(e.Step, e.Trusted)
	case coordinator.Withdraw:
		m.withdrawAfter = &e.After
	case coordinator.SaveModel:
		m.save()
	case coordinator.Report:
		m.published.Publish(true, m.status)
	case coordinator.Notice:
		m.notice(e)
	case coordinator.Exit:
		m.result = &Result{Code: e.Code, Reason: e.Reason, Model: m.info}
	default:
		panic(fmt.Sprintf("master: unknown effect %T", e))
	}
}

func narrow(vs []int) []int32 {
	out := make([]int32, len(vs))
	for i, v := range vs {
		out[i] = int32(v)
	}
	return out
}

// accept adds a gradient to the sum of the step.
func (m *Master) accept(g *receivedGradient) {
	n := m.network
	for i := range g.span.Len() {
		v := g.span.Lo + i
		m.results[v] = g.results[i]
		copy(m.stats[v], g.floats[n.TrainableSize()+i*n.StatsSize():])
	}
	if err := m.tree.Add(g.span, gradient.Sum{Dense: g.floats[:n.TrainableSize()], Rows: g.rows}); err != nil {
		panic("master: " + err.Error()) // the coordinator accepts each virtual worker once
	}
	g.floats = nil
}

// publish sends the sum to all workers, and then has it applied here: this order saves the workers' time.
func (m *Master) publish(e coordinator.Publish) {
	n := m.network
	k := m.cfg.Job.Schedule.Minibatches(e.Step)
	sum, _ := m.tree.Sum() // it is complete: the coordinator publishes only then
	rows := gradient.Counts(sum.Rows)
	floats := make([]float32, 0, n.TrainableSize()+k*n.StatsSize())
	floats = append(floats, sum.Dense...)
	for v := range k {
		floats = append(floats, m.stats[v]...)
	}
	floats = gradient.AppendPacked(floats, sum.Rows)
	if len(m.updates) == retainedUpdates {
		m.updates = slices.Delete(m.updates, 0, 1)
	}
	m.observe(e.Step, k)
	u := update{step: e.Step, floats: floats, rows: rows, measured: measured(m.last)}
	m.updates = append(m.updates, u)
	for id, c := range m.conns {
		if c.follows == everything {
			m.sendUpdate(c, u, e.Next[id], e.Hash)
		}
	}
	m.log.Debug("published", "step", e.Step)
	m.apply(u)
	m.resetTree(e.Step + 1)
	if e.Hash {
		m.hashOwn(e.Step + 1)
	}
}

// apply has an update applied to the state. The coordinator completes no further step while too many are not.
func (m *Master) apply(u update) {
	if m.keeper.unapplied++; m.keeper.unapplied == retainedUpdates {
		m.pending = append(m.pending, coordinator.Behind{Is: true})
	}
	m.keeper.apply(u, func(err error) {
		if err != nil {
			m.step(coordinator.Unhealthy{Reason: err.Error()})
		}
		if m.keeper.unapplied--; m.keeper.unapplied == retainedUpdates-1 {
			m.step(coordinator.Behind{Is: false})
		}
	})
}

// sendUpdate queues an update; a worker whose queue is full starts again from a state when it reads again.
func (m *Master) sendUpdate(c *connection, u update, next []int, hash bool) {
	message := &wirepb.Message{Kind: &wirepb.Message_Update{Update: &wirepb.Update{
		Step: u.step, Next: narrow(next), Hash: hash, Measured: u.measured, Rows: u.rows,
	}}}
	if !c.Queue.SendTensor(message, u.floats, nil) {
		c.Queue.Drop()
		m.log.Warn("a worker reads too slowly; it receives a new state", "worker", c.Worker, "node", c.Node)
		m.pending = append(m.pending, coordinator.Overflow{Worker: c.Worker})
	}
}

// fetchedState is a worker's state, received in full.
type fetchedState struct {
	floats      []float32
	last        *wirepb.Measured
	evaluations []trainingjob.Measurement
	validation  string // what these were made on
}

// adoptState continues from a worker's state instead of the master's. The master does not have the updates that led to
// it.
func (m *Master) adoptState(step int64, hash string, f fetchedState) {
	m.keeper.adopt(step, f.floats)
	m.own.hash, m.own.step, m.updates = hash, step, nil
	for _, c := range m.conns {
		if c.follows == everything {
			c.follows = nothing // the coming updates apply to another state than theirs
		}
	}
	m.evaluations.began = time.Time{}
	if f.validation == m.cfg.Job.Identity.Validation { // a worker that was disconnected lacks the evaluations of that time
		f.evaluations = union(m.evaluations.before(step), f.evaluations)
	}
	m.takeEvaluations(step, f.evaluations, f.validation)
	m.last = m.measuredAt(step, f.last.GetLossSum(), f.last.GetCounts())
	m.resetTree(step)
}

// resetTree prepares the tree for the gradients of a step, if there is one.
func (m *Master) resetTree(step int64) {
	if step < m.cfg.Job.Schedule.Steps() {
		m.tree.Reset(m.cfg.Job.Schedule.Minibatches(step))
	}
}

// measured is the loss and metrics of the last step, as sent with a state or an update.
func measured(r nn.Result) *wirepb.Measured {
	return &wirepb.Measured{LossSum: r.LossSum, Counts: r.Counts}
}

// sendUpdates sends a worker the updates that it lacks.
func (m *Master) sendUpdates(id int, from int64) {
	c := m.conns[id]
	if c == nil {
		return
	}
	c.follows = everything
	for _, u := range m.updates {
		if u.step >= from {
			m.sendUpdate(c, u, nil, false)
		}
	}
}

func (m *Master) refuse(c *connection, reason string) {
	c.closing, c.follows = true, nothing
	m.gaveUp[c.Worker] = reason // the reason of its end
	c.Queue.Send(&wirepb.Message{Kind: &wirepb.Message_Refusal{Refusal: &wirepb.Refusal{Reason: reason}}})
	c.Queue.Close()
}
