package master

import (
	"slices"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/gradient"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/history"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire/wirepb"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/allreduce"
)

// While the workers add the gradients between themselves the master says who takes part, and applies nothing.

// allReduce says from how many workers on a job is computed like that; nil: never.
func (m *Master) allReduce() func(workers int) bool {
	switch m.cfg.Job.Spec.Training.Aggregation {
	case trainingjob.AggregationAllReduce:
		return func(int) bool { return true }
	case trainingjob.AggregationAuto:
		// Of tables a gradient has at most the rows that a minibatch can look up.
		rows := gradient.LongestPacked(m.network.Tables(), m.cfg.Job.Spec.Training.MinibatchSize)
		return func(workers int) bool { return allreduce.Pays(4*(m.network.TrainableSize()+rows), workers) }
	}
	return nil
}

// beginRound tells everybody who takes part in a round.
func (m *Master) beginRound(e coordinator.Round) {
	everybody := slices.Concat(e.Owners, e.Listeners)
	for _, id := range everybody {
		c := m.conns[id]
		if c == nil {
			continue // it has just gone, which is the next event
		}
		c.queue.Send(&wirepb.Message{Kind: &wirepb.Message_Round{Round: &wirepb.Round{
			Number: e.Number, Step: e.Step, VirtualWorkers: narrow(e.Assigned[id]), Owners: narrow(e.Owners), Listeners: narrow(e.Listeners), Hash: e.Hash,
			Answers: narrow(e.HashReports[id]), Seconds: narrow(e.Backups[id]),
			Peers: m.describePeers(c, everybody),
		}}})
	}
}

// describePeers describes those workers that this one has not been told of, or as another process.
func (m *Master) describePeers(to *connection, ids []int) []*wirepb.Peer {
	var peers []*wirepb.Peer
	for _, id := range ids {
		c := m.conns[id]
		if c == nil || c == to || to.sentPeers[id] == c.address {
			continue
		}
		to.sentPeers[id] = c.address
		peers = append(peers, &wirepb.Peer{Worker: int32(id), Address: c.address, Certificate: c.certificate})
	}
	return peers
}

// relay has a worker send the sum of a step to others. It is told how they are reached, whether it knows or not.
func (m *Master) relay(e coordinator.Relay) {
	from := m.conns[e.From]
	if from == nil {
		return
	}
	r := &wirepb.Relay{Round: e.Round, Step: e.Step}
	for _, id := range e.To {
		if c := m.conns[id]; c != nil {
			r.To = append(r.To, &wirepb.Peer{Worker: int32(id), Address: c.address, Certificate: c.certificate})
		}
	}
	from.queue.Send(&wirepb.Message{Kind: &wirepb.Message_Relay{Relay: r}})
}

// recordApplied keeps what a worker says of the step that it has applied: the master has seen no gradient of it.
func (m *Master) recordApplied(a *wirepb.Applied) {
	if a.Measured != nil && a.Step >= m.newestSaid.GetStep() {
		m.newestSaid = a
	}
}

// advance observes a step that the workers have done between themselves.
func (m *Master) advance(step int64) {
	if m.newestSaid.GetStep() != step+1 {
		return
	}
	said := m.newestSaid.Measured
	m.last = m.measuredAt(step+1, said.LossSum, said.Counts)
	m.cfg.History.Stepped(history.Step{Records: m.last.Records, LossSum: m.last.LossSum})
	m.log.Debug("published", "step", step) // by the workers, to each other
}

// aggregation is where gradients are added now.
func aggregation(s coordinator.Status) string {
	if s.AllReduce {
		return trainingjob.AggregationAllReduce
	}
	return trainingjob.AggregationMaster
}
