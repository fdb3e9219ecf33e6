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

// During an all-reduce the master only announces who takes part, and applies nothing.

// allReduce reports for which numbers of workers the job uses all-reduce; nil: for none.
func (m *Master) allReduce() func(workers int) bool {
	switch m.cfg.Job.Spec.Training.Aggregation {
	case trainingjob.AggregationAllReduce:
		return func(int) bool { return true }
	case trainingjob.AggregationAuto:
		// A gradient has at most the rows of a table that a minibatch can look up.
		rows := gradient.LongestPacked(m.network.Tables(), m.cfg.Job.Spec.Training.MinibatchSize)
		return func(workers int) bool { return allreduce.Pays(4*(m.network.TrainableSize()+rows), workers) }
	}
	return nil
}

// beginRound announces a round to all that take part.
func (m *Master) beginRound(e coordinator.Round) {
	everybody := slices.Concat(e.Owners, e.Listeners)
	for _, id := range everybody {
		c := m.conns[id]
		if c == nil {
			continue // its stream has just ended; the event follows
		}
		c.Queue.Send(&wirepb.Message{Kind: &wirepb.Message_Round{Round: &wirepb.Round{
			Number: e.Number, Step: e.Step, VirtualWorkers: narrow(e.Assigned[id]), Owners: narrow(e.Owners), Listeners: narrow(e.Listeners), Hash: e.Hash,
			Answers: narrow(e.HashReports[id]), Seconds: narrow(e.Backups[id]),
			Peers: m.describePeers(c, everybody),
		}}})
	}
}

// describePeers describes the workers whose address this one has not received, or that have been restarted since.
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

// relay asks a worker to send the sum of a step to others, with their addresses.
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
	from.Queue.Send(&wirepb.Message{Kind: &wirepb.Message_Relay{Relay: r}})
}

// recordApplied keeps the loss and counts that a worker reports with a step: the master has seen no gradient of it.
func (m *Master) recordApplied(a *wirepb.Applied) {
	if a.Measured != nil && a.Step >= m.newestSaid.GetStep() {
		m.newestSaid = a
	}
}

// advance records a step of an all-reduce in the history.
func (m *Master) advance(step int64) {
	if m.newestSaid.GetStep() != step+1 {
		return
	}
	reported := m.newestSaid.Measured
	m.last = m.measuredAt(step+1, reported.LossSum, reported.Counts)
	m.cfg.History.OnStep(history.Step{Records: m.last.Records, LossSum: m.last.LossSum})
	m.log.Debug("published", "step", step) // by the workers, to each other
}

// aggregation is where gradients are added now.
func aggregation(s coordinator.Status) string {
	if s.AllReduce {
		return trainingjob.AggregationAllReduce
	}
	return trainingjob.AggregationMaster
}
