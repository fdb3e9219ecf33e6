package worker

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/reduce"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire/wirepb"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/allreduce"
)

// exchangeState is what a worker needs for an all-reduce. Without an exchange the job never uses one.
type exchangeState struct {
	exchange *allreduce.Exchange
	round    *wirepb.Round // the newest of this stream; nil while the master adds the gradients
	sent     int64         // the newest round to which this worker has contributed everything
	kept     allreduce.Sum // the sum of the step that was applied last: others may lack it
	ahead    map[int64]allreduce.Sum
}

const (
	// aheadSums is how many sums a worker that joins keeps while it waits for the state before them.
	aheadSums = 16
	// stepTimeout is how long a worker that is signalled to stop still takes part in the step in flight: less than the 30
	// s of a pod's termination grace period.
	stepTimeout = 20 * time.Second
)

// startExchange starts this worker's all-reduce server, if the job may use all-reduce.
func (w *worker) startExchange() error {
	w.exchangeState = exchangeState{ahead: map[int64]allreduce.Sum{}}
	j := w.job
	if a := j.Spec.Training.Aggregation; a == "" || a == trainingjob.AggregationMaster {
		return nil
	}
	host, err := w.peerHost()
	if err != nil {
		return err
	}
	w.exchange, err = allreduce.New(allreduce.Config{
		Self: w.cfg.ID, Host: host, Token: w.cfg.Credentials.Token, Add: j.Kernel.Add, Most: j.Spec.Training.GradsToWait, At: w.cfg.At, Log: w.log,
		Layout: allreduce.Layout{
			Dense: j.Network.TrainableSize(), Stats: j.Network.StatsSize(), Tables: j.Network.Tables(),
			Minibatch: j.Spec.Training.MinibatchSize,
		},
		VirtualWorkers: func(step int64) int {
			if step < 0 || step >= j.Schedule.Steps() {
				return 0
			}
			return j.Schedule.Minibatches(step)
		},
	})
	return err
}

// stopExchange stops what startExchange has started.
func (w *worker) stopExchange() {
	if w.exchange == nil {
		return
	}
	w.exchange.Close()
	t := w.exchange.Traffic()
	w.log.Info("sent to other workers", "payload_bytes", t.Payload, "framing_bytes", t.Framing)
	w.exchange = nil
}

// peerHost is the address from which this machine or pod reaches the master; other workers can reach it there. It sends
// nothing.
func (w *worker) peerHost() (string, error) {
	if w.cfg.PeerHost != "" {
		return w.cfg.PeerHost, nil
	}
	conn, err := net.Dial("udp", w.cfg.Master)
	if err != nil {
		return "", fmt.Errorf("find the address by which other workers reach this one: %w; name it with --peer-host", err)
	}
	host, _, err := net.SplitHostPort(conn.LocalAddr().String())
	return host, errors.Join(err, conn.Close())
}

// FirstRound is smaller than the round numbers of a master of that generation, and greater than those of every earlier
// one.
func FirstRound(generation int64) int64 { return generation << 32 }

// wake is signalled when the exchange has a sum or an error; never without an exchange.
func (w *worker) wake() <-chan struct{} {
	if w.exchange == nil {
		return nil
	}
	return w.exchange.Wake()
}

// beginRound takes part in a round of the step that the state is at. A worker that has applied the step already reports
// that again; a joining worker only listens.
func (s *session) beginRound(r *wirepb.Round) error {
	if s.exchange == nil {
		return protocolErrorf("the master began round %d of a job whose gradients it adds itself", r.Number)
	}
	s.round = r
	s.exchange.Know(peers(r.Peers))
	s.exchange.Begin(allreduce.Round{Number: r.Number, Step: r.Step, Owners: wide(r.Owners), Listeners: wide(r.Listeners)})
	switch {
	case r.Step < s.step:
		s.sendApplied()
		return nil
	case r.Step > s.step:
		return nil
	}
	if r.Hash {
		s.queue.Send(&wirepb.Message{Kind: &wirepb.Message_StateHash{StateHash: &wirepb.StateHash{Step: s.step, Hash: s.hash()}}})
	}
	s.forget() // sums for an earlier master have no use in a round
	s.todo = nil
	mine := r.VirtualWorkers
	if s.planned == s.step { // another round of the step: keep what was computed for the one before
		mine = slices.DeleteFunc(slices.Clone(mine), func(v int32) bool {
			return slices.ContainsFunc(s.tree.Spans(), func(held reduce.Span) bool { return held.Lo <= int(v) && int(v) < held.Hi })
		})
	}
	s.assign(slices.Concat(r.Seconds, mine)) // backups first: their hashes are compared in this step
	return s.contribute()
}

// isBackup reports whether a virtual worker is computed only for its hash.
func (w *worker) isBackup(v int) bool {
	return w.round != nil && slices.Contains(w.round.Seconds, int32(v))
}

// reportHash sends the hash of a virtual worker's gradient to the master.
func (s *session) reportHash(v int32) {
	s.queue.Send(&wirepb.Message{Kind: &wirepb.Message_Answer{Answer: &wirepb.Answer{Step: s.step, VirtualWorker: v, Hash: s.hashes[v]}}})
}

// contribute sends this worker's sums of the current step to the owners of the slices, once all of them are computed.
func (s *session) contribute() error {
	r := s.round
	if r.Step != s.step || s.planned != s.step || len(s.todo) > 0 || s.sent == r.Number || !slices.Contains(r.Owners, int32(s.cfg.ID)) {
		return nil
	}
	s.sent = r.Number
	for _, v := range slices.Concat(r.Seconds, r.Answers) {
		if int(v) < len(s.plan.Minibatches) {
			s.reportHash(v)
		}
	}
	var parts []allreduce.Part
	for _, span := range s.tree.Spans() {
		p := allreduce.Part{Span: span, Sum: s.tree.At(span), Stats: s.stats[span.Lo:span.Hi]}
		for _, result := range s.results[span.Lo:span.Hi] {
			p.Measured = append(p.Measured, &wirepb.Measured{LossSum: result.LossSum, Counts: result.Counts})
		}
		parts = append(parts, p)
	}
	return s.exchange.Contribute(parts)
}

// takeSums applies the complete sums, in the order of steps, and passes on errors about peers.
func (s *session) takeSums() error {
	if s.exchange == nil {
		return nil
	}
	for {
		c, ok := s.exchange.PeerError()
		if !ok {
			break
		}
		s.reportUnreachable(c.Round, c.Peer, c.Reason)
	}
	for {
		sum, ok := s.exchange.Next()
		if !ok {
			break
		}
		if sum.Step >= s.step {
			s.ahead[sum.Step] = sum
		}
	}
	if len(s.ahead) > aheadSums {
		clear(s.ahead)
		if s.round != nil {
			s.reportUnreachable(s.round.Number, s.cfg.ID, "the state that it waits for does not come")
		}
	}
	for {
		sum, ok := s.ahead[s.step]
		if !ok || !s.mayApply(sum) {
			return nil
		}
		delete(s.ahead, s.step)
		if err := s.apply(sum.Floats, sum.Rows); err != nil {
			return s.report(err)
		}
		s.kept, s.last = sum, sum.Measured
		s.forget()
		s.exchange.Applied(s.step)
		s.at(allreduce.BeforeSaying, sum.Step)
		s.sendApplied()
		s.at(allreduce.AfterSaying, sum.Step)
	}
}

// mayApply reports whether no other worker still needs this worker's part. A sum that was completed in an earlier
// round, even for another master, is applied by an owner of a slice of this round after it has contributed: others lack
// it.
func (s *session) mayApply(sum allreduce.Sum) bool {
	r := s.round
	return r != nil && (sum.Round >= r.Number || r.Step != s.step || s.sent == r.Number || !slices.Contains(r.Owners, int32(s.cfg.ID)))
}

func (s *session) at(p allreduce.Point, step int64) {
	if s.cfg.At != nil {
		s.cfg.At(p, step)
	}
}

func (s *session) reportUnreachable(round int64, peer int, reason string) {
	s.queue.Send(&wirepb.Message{Kind: &wirepb.Message_Unreachable{Unreachable: &wirepb.Unreachable{Round: round, Peer: int32(peer), Reason: reason}}})
}

// relay sends the sum of the last applied step to workers that lack it.
func (s *session) relay(r *wirepb.Relay) {
	if s.exchange == nil || s.kept.Floats == nil || s.kept.Step != r.Step {
		return
	}
	to := peers(r.To)
	s.exchange.Know(to)
	var ids []int
	for _, p := range to {
		ids = append(ids, p.Worker)
	}
	s.exchange.Relay(r.Round, s.kept, ids)
}

// stateTaken reports that the state was replaced: sums of earlier steps are discarded.
func (s *session) stateTaken() {
	if s.exchange == nil {
		return
	}
	s.exchange.Applied(s.step)
	for step := range s.ahead {
		if step < s.step {
			delete(s.ahead, step)
		}
	}
}

func peers(described []*wirepb.Peer) []allreduce.Peer {
	var list []allreduce.Peer
	for _, p := range described {
		list = append(list, allreduce.Peer{Worker: int(p.Worker), Address: p.Address, Certificate: p.Certificate})
	}
	return list
}

func wide(ids []int32) []int {
	out := make([]int, len(ids))
	for i, id := range ids {
		out[i] = int(id)
	}
	return out
}
