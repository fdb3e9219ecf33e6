package allreduce

import (
	"fmt"
	"slices"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/gradient"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/reduce"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire/wirepb"
)

// Begin takes part in a round. It discards what was gathered in an earlier round of the same step.
func (e *Exchange) Begin(r Round) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r.Number <= e.round.Number {
		return
	}
	e.round = r
	k := e.cfg.VirtualWorkers(r.Step)
	e.tree = reduce.NewTree(e.cfg.Add, nil)
	e.tree.Reset(k)
	e.stats, e.measured = make([][]float32, k), make([]*wirepb.Measured, k)
	for worker := range e.links {
		if !slices.Contains(r.Owners, worker) && !slices.Contains(r.Listeners, worker) {
			e.unlink(worker)
		}
	}
	e.changed.Broadcast()
}

// Contribute sends every owner of the round its slice of the parts, which are all that this worker has for the round.
// It is called once in a round; the parts may change when it has returned.
func (e *Exchange) Contribute(parts []Part) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := e.round
	e.cfg.At(BeforeSending, r.Step)
	own := slices.Index(r.Owners, e.cfg.Self)
	if own < 0 {
		return fmt.Errorf("worker %d contributes to round %d, of which it is no owner", e.cfg.Self, r.Number)
	}
	for step := range r.Owners { // each starts with its successor, so that they do not all send to the same owner first
		i := (own + step + 1) % len(r.Owners)
		share := e.cfg.Layout.share(i, len(r.Owners))
		for _, p := range parts {
			floats, rows := share.pack(p)
			if i == own {
				sum, stats, err := e.cfg.Layout.unpack(share, p.Span.Len(), floats, rows)
				if err != nil {
					return err
				}
				if err := e.merge(p.Span, sum, stats, p.Measured); err != nil {
					return err
				}
				continue
			}
			s := &wirepb.Slice{
				Round: r.Number, Step: r.Step, From: int32(e.cfg.Self), Lo: int32(p.Span.Lo), Hi: int32(p.Span.Hi),
				Index: int32(i), Count: int32(len(r.Owners)), Rows: rows,
			}
			if i == 0 {
				s.Measured = p.Measured
			}
			e.send(r.Owners[i], s, floats)
		}
	}
	return nil
}

// merge adds a part of this worker's slice, and sends the slice to all workers when it is complete.
func (e *Exchange) merge(span reduce.Span, sum gradient.Sum, stats [][]float32, measured []*wirepb.Measured) error {
	if err := e.tree.Add(span, sum); err != nil {
		return err
	}
	copy(e.stats[span.Lo:], stats)
	copy(e.measured[span.Lo:], measured)
	whole, ok := e.tree.Sum()
	if !ok {
		return nil
	}
	r := e.round
	e.cfg.At(BeforeFinished, r.Step)
	i, n := slices.Index(r.Owners, e.cfg.Self), len(r.Owners)
	s := &wirepb.Slice{
		Round: r.Number, Step: r.Step, From: int32(e.cfg.Self), Hi: int32(len(e.stats)), Finished: true, Index: int32(i),
		Count: int32(n), Rows: gradient.Counts(whole.Rows),
	}
	if i == 0 {
		s.Measured = []*wirepb.Measured{total(e.measured)}
	}
	floats := slices.Clone(whole.Dense)
	for _, part := range e.stats {
		floats = append(floats, part...)
	}
	floats = gradient.AppendPacked(floats, whole.Rows)
	for _, worker := range slices.Concat(r.Owners, r.Listeners) {
		if worker != e.cfg.Self {
			e.send(worker, s, floats)
		}
	}
	e.gather(s, whole, e.stats)
	return nil
}

// total adds what was measured in the order of virtual workers.
func total(parts []*wirepb.Measured) *wirepb.Measured {
	sum := &wirepb.Measured{}
	for _, m := range parts {
		sum.LossSum += m.GetLossSum()
		if counts := m.GetCounts(); len(counts) > len(sum.Counts) {
			sum.Counts = append(sum.Counts, make([]int64, len(counts)-len(sum.Counts))...)
		}
		for i, n := range m.GetCounts() {
			sum.Counts[i] += n
		}
	}
	return sum
}

// gather stores a finished slice.
func (e *Exchange) gather(s *wirepb.Slice, sum gradient.Sum, stats [][]float32) {
	if s.Step < e.step {
		return
	}
	g := e.gathered[s.Step]
	switch {
	case g != nil && (g.missing == 0 || s.Round < g.round):
		return
	case g == nil || s.Round > g.round || int(s.Count) != len(g.have):
		if len(e.gathered) >= keptSteps && g == nil {
			delete(e.gathered, oldest(e.gathered))
		}
		g = e.cfg.Layout.newGathering(s.Round, s.Step, int(s.Hi), int(s.Count))
		e.gathered[s.Step] = g
	}
	var measured *wirepb.Measured
	if len(s.Measured) > 0 {
		measured = s.Measured[0]
	}
	if e.cfg.Layout.add(g, int(s.Index), sum, stats, measured) {
		e.cfg.At(BeforeApplying, s.Step)
		e.sums = append(e.sums, g.sum)
		g.sum, g.tables = Sum{}, nil // the receiver owns it now
		e.signal()
	}
}

func oldest(gathered map[int64]*gathering) int64 {
	first := int64(-1)
	for step := range gathered {
		if first < 0 || step < first {
			first = step
		}
	}
	return first
}

// Relay sends the whole sum of a step to others in a round, as slice 0 of 1.
func (e *Exchange) Relay(round int64, sum Sum, to []int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := &wirepb.Slice{
		Round: round, Step: sum.Step, From: int32(e.cfg.Self), Hi: int32(e.cfg.VirtualWorkers(sum.Step)), Finished: true, Count: 1, Rows: sum.Rows,
		Measured: []*wirepb.Measured{sum.Measured},
	}
	for _, worker := range to {
		e.send(worker, s, sum.Floats)
	}
}
