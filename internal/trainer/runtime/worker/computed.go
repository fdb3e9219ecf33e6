package worker

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"slices"
	"sync/atomic"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/gradient"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/nn"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/reduce"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire/wirepb"
)

// sum is the sum of the gradients of some virtual workers of the current step. A worker keeps it until the update of
// the step arrives, even after it was sent: if the master dies, the next one needs it again.
type sum struct {
	span    reduce.Span
	message *wirepb.Gradient
	floats  []float32
	users   atomic.Int32 // users of floats: this worker, and each queue that sends it
	buffers *wire.Buffers
}

func (g *sum) release() {
	if g.users.Add(-1) == 0 {
		g.buffers.Put(g.floats)
	}
}

// gather removes the sums from the tree: the fewest that cover the computed part of the current step. Sums of a
// step that is already complete stay in the tree until its next use: sent now they would count for another step.
func (w *worker) gather() []*sum {
	if w.planned != w.step {
		return nil
	}
	n := w.job.Network
	first := len(w.computed)
	for _, span := range w.tree.Spans() {
		of := w.tree.Take(span)
		g := &wirepb.Gradient{Step: w.step, Lo: int32(span.Lo), Hi: int32(span.Hi)}
		floats := of.Dense[:n.TrainableSize()+span.Len()*n.StatsSize()]
		for i := range span.Len() {
			v := span.Lo + i
			g.LossSums = append(g.LossSums, w.results[v].LossSum)
			g.Counts = append(g.Counts, w.results[v].Counts...)
			g.Hashes = append(g.Hashes, w.hashes[v])
			copy(floats[n.TrainableSize()+i*n.StatsSize():], w.stats[v])
		}
		g.Rows, floats = gradient.Counts(of.Rows), gradient.AppendPacked(floats, of.Rows)
		kept := &sum{span: span, message: g, floats: floats, buffers: w.buffers}
		kept.users.Store(1)
		w.computed = append(w.computed, kept)
	}
	return w.computed[first:]
}

// forget releases the sums of a finished step.
func (w *worker) forget() {
	for _, g := range w.computed {
		g.release()
	}
	w.computed, w.again = nil, 0
}

// send queues a sum. A worker's queue takes whatever it computes: the master answers each step.
func (s *session) send(g *sum) {
	g.users.Add(1)
	s.queue.SendTensor(&wirepb.Message{Kind: &wirepb.Message_Gradient{Gradient: g.message}}, g.floats, g.release)
}

// sendGradients sends what has been computed since the last call.
func (s *session) sendGradients() {
	for _, g := range s.gather() {
		s.send(g)
	}
}

// resend sends the computed sums that a new master requests, once, and returns the virtual workers that remain to be
// computed.
func (s *session) resend(vs []int32) []int32 {
	if s.again == 0 {
		return vs
	}
	requested := func(g *sum) bool {
		for v := g.span.Lo; v < g.span.Hi; v++ {
			if !slices.Contains(vs, int32(v)) {
				return false
			}
		}
		return true
	}
	for _, g := range s.computed[:s.again] {
		if requested(g) {
			s.send(g)
			vs = slices.DeleteFunc(slices.Clone(vs), func(v int32) bool { return g.span.Lo <= int(v) && int(v) < g.span.Hi })
		}
	}
	s.again = 0
	return vs
}

// castagnoli is a checksum with hardware support, as fast as memory.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// resultHash is the hash by which two workers' results of the same virtual worker are compared: the gradient and the
// statistics behind it, the rows of the tables, the loss and the counts. It is computed before several results are
// summed, since the sums depend on the assignments; a checksum detects every single flipped bit, and misses other
// differences once in 2³².
func resultHash(r nn.Result, out []float32, rows []gradient.Rows) uint32 {
	hash := crc32.Checksum(wire.Bytes(out), castagnoli)
	if len(rows) > 0 {
		hash = crc32.Update(hash, castagnoli, wire.Bytes(gradient.AppendPacked(nil, rows)))
	}
	measured := make([]byte, 0, 16+8*len(r.Counts))
	measured = binary.LittleEndian.AppendUint64(measured, math.Float64bits(r.LossSum))
	measured = binary.LittleEndian.AppendUint64(measured, uint64(r.Records))
	for _, n := range r.Counts {
		measured = binary.LittleEndian.AppendUint64(measured, uint64(n))
	}
	return crc32.Update(hash, castagnoli, measured)
}
