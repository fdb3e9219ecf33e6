package allreduce

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/elastic-training/terraform-provider-elastic/internal/eventually"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/gradient"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/reduce"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire/wirepb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func add(dst, a []float32) {
	for i := range dst {
		dst[i] += a[i]
	}
}

// step holds the gradients of a step, by virtual worker, and their sum.
type step struct {
	layout Layout
	parts  []Part
}

// newStep makes the gradients of k virtual workers.
func newStep(seed, k int, l Layout) step {
	s := step{layout: l}
	value := func(v, i int) float32 { return float32(math.Sin(float64(seed*7919+v*104729+i)) * 1000) }
	for v := range k {
		p := Part{Span: reduce.Span{Lo: v, Hi: v + 1}, Measured: []*wirepb.Measured{{LossSum: float64(value(v, -1)), Counts: []int64{int64(v + 1), int64(seed)}}}}
		p.Sum.Dense, p.Stats = make([]float32, l.Dense), [][]float32{make([]float32, l.Stats)}
		for i := range p.Sum.Dense {
			p.Sum.Dense[i] = value(v, i)
		}
		for i := range p.Stats[0] {
			p.Stats[0][i] = value(v, i+1_000_000)
		}
		for t, table := range l.Tables {
			var r gradient.Rows
			for row := (v + t) % 3; row < table.Rows; row += 3 + v {
				if len(r.Index) < table.Most(l.Minibatch) {
					r.Index = append(r.Index, int32(row))
					for i := range table.Width {
						r.Values = append(r.Values, value(v, row*31+i))
					}
				}
			}
			p.Sum.Rows = append(p.Sum.Rows, r)
		}
		s.parts = append(s.parts, p)
	}
	return s
}

func clone(s gradient.Sum) gradient.Sum {
	c := gradient.Sum{Dense: slices.Clone(s.Dense)}
	for _, r := range s.Rows {
		c.Rows = append(c.Rows, gradient.Rows{Index: slices.Clone(r.Index), Values: slices.Clone(r.Values)})
	}
	return c
}

// held returns the contribution of a worker that computed some virtual workers: the fewest subtrees.
func (s step) held(virtual []int) []Part {
	tree := reduce.NewTree(add, nil)
	tree.Reset(len(s.parts))
	for _, v := range virtual {
		if err := tree.Add(s.parts[v].Span, clone(s.parts[v].Sum)); err != nil {
			panic(err)
		}
	}
	var parts []Part
	for _, span := range tree.Spans() {
		p := Part{Span: span, Sum: tree.Take(span)}
		for v := span.Lo; v < span.Hi; v++ {
			p.Stats = append(p.Stats, s.parts[v].Stats[0])
			p.Measured = append(p.Measured, s.parts[v].Measured[0])
		}
		parts = append(parts, p)
	}
	return parts
}

// sum is the sum as the master computes it.
func (s step) sum(number int64) Sum {
	all := make([]int, len(s.parts))
	for v := range all {
		all[v] = v
	}
	whole := s.held(all)[0]
	sum := Sum{Step: number, Floats: slices.Clone(whole.Sum.Dense), Rows: gradient.Counts(whole.Sum.Rows), Measured: &wirepb.Measured{Counts: []int64{0, 0}}}
	for _, m := range whole.Measured {
		sum.Measured.LossSum += m.LossSum
		for i := range sum.Measured.Counts {
			sum.Measured.Counts[i] += m.Counts[i]
		}
	}
	for _, stats := range whole.Stats {
		sum.Floats = append(sum.Floats, stats...)
	}
	sum.Floats = gradient.AppendPacked(sum.Floats, whole.Sum.Rows)
	return sum
}

func equal(a, b Sum) bool {
	return a.Step == b.Step && slices.Equal(a.Rows, b.Rows) && a.Measured.GetLossSum() == b.Measured.GetLossSum() && slices.Equal(a.Measured.GetCounts(), b.Measured.GetCounts()) &&
		slices.EqualFunc(a.Floats, b.Floats, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// workers are n exchanges of this process that know each other.
func workers(t fataler, n, k int, l Layout) ([]*Exchange, func()) {
	t.Helper()
	var all []*Exchange
	var peers []Peer
	for id := range n {
		e, err := New(Config{Self: id, Host: "127.0.0.1", Token: "token", Layout: l, VirtualWorkers: func(int64) int { return k }, Most: k, Add: add, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatalf("%v", err)
		}
		all, peers = append(all, e), append(peers, e.Self())
	}
	for _, e := range all {
		e.Know(peers)
	}
	return all, func() {
		for _, e := range all {
			e.Close()
		}
	}
}

// next waits for a sum. It fails on errors about peers that are not dead.
func next(t fataler, e *Exchange, dead ...int) Sum {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience.Medium)
	defer cancel()
	for {
		if s, ok := e.Next(); ok {
			return s
		}
		if c, ok := e.PeerError(); ok && !slices.Contains(dead, c.Peer) {
			t.Fatalf("worker %d: %+v", e.cfg.Self, c)
		}
		select {
		case <-e.Wake():
		case <-ctx.Done():
			t.Fatalf("worker %d has no sum: %d parts gathered", e.cfg.Self, len(e.gathered))
		}
	}
}

func ids(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

var withTables = Layout{Dense: 1000, Stats: 70, Minibatch: 4, Tables: []gradient.Table{{Name: "a", Rows: 300, Width: 3, Lookups: 9}, {Name: "b", Rows: 20, Width: 1, Lookups: 2}}}

func TestEveryWorkerGetsTheBitsOfTheMastersSumWhoeverHoldsWhat(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, k := rapid.IntRange(1, 5).Draw(t, "workers"), rapid.IntRange(1, 9).Draw(t, "virtual workers")
		l := withTables
		l.Dense = rapid.IntRange(1, 700).Draw(t, "dense")
		all, closed := workers(t, n, k, l)
		defer closed()
		for number := range int64(3) {
			s := newStep(int(number), k, l)
			dealt := map[int][]int{}
			for v := range k {
				w := rapid.IntRange(0, n-1).Draw(t, fmt.Sprint("owner of ", v))
				dealt[w] = append(dealt[w], v)
			}
			for _, id := range rapid.Permutation(ids(n)).Draw(t, "order") {
				all[id].Begin(Round{Number: number + 1, Step: number, Owners: ids(n)})
				if err := all[id].Contribute(s.held(dealt[id])); err != nil {
					t.Fatalf("%v", err)
				}
			}
			want := s.sum(number)
			for id, e := range all {
				if got := next(t, e); !equal(got, want) {
					t.Fatalf("worker %d of %d has another sum of step %d", id, n, number)
				}
				e.Applied(number + 1)
			}
		}
	})
}

func TestAnotherRoundOfTheStepUsesWhatIsLeftAndIgnoresWhatComesLate(t *testing.T) {
	l, k := withTables, 5
	all, closed := workers(t, 4, k, l)
	defer closed()
	s := newStep(1, k, l)
	deal := [][]int{{0, 1}, {2}, {3}, {4}}
	for id, e := range all[:3] { // worker 3 dies before it has sent anything
		e.Begin(Round{Number: 1, Step: 7, Owners: ids(4)})
		if err := e.Contribute(s.held(deal[id])); err != nil {
			t.Fatal(err)
		}
	}
	all[3].Close()
	deal[1] = []int{2, 4}
	for _, id := range []int{2, 1, 0} { // whose slices wait at workers that do not know the round yet
		all[id].Begin(Round{Number: 2, Step: 7, Owners: ids(3)})
		if err := all[id].Contribute(s.held(deal[id])); err != nil {
			t.Fatal(err)
		}
	}
	for id, e := range all[:3] {
		if got := next(t, e, 3); !equal(got, s.sum(7)) {
			t.Errorf("worker %d has another sum", id)
		}
	}
}

func TestAListenerGetsTheSumAndAWorkerThatHasItRelaysIt(t *testing.T) {
	l, k := withTables, 2
	all, closed := workers(t, 4, k, l)
	defer closed()
	s := newStep(1, k, l)
	for id, e := range all[:3] {
		e.Begin(Round{Number: 1, Step: 0, Owners: []int{0, 1}, Listeners: []int{2}})
		if id < 2 {
			if err := e.Contribute(s.held([]int{id})); err != nil {
				t.Fatal(err)
			}
		}
	}
	listened := next(t, all[2])
	if !equal(listened, s.sum(0)) {
		t.Error("the listener has another sum")
	}
	all[2].Relay(1, listened, []int{3})
	if got := next(t, all[3]); !equal(got, s.sum(0)) {
		t.Error("the relayed sum differs")
	}
	all[3].Applied(1)
	all[2].Relay(1, listened, []int{3})
	all[2].Relay(1, Sum{Step: 1, Floats: listened.Floats, Rows: listened.Rows, Measured: listened.Measured}, []int{3})
	if got := next(t, all[3]); got.Step != 1 {
		t.Errorf("step %d was delivered again", got.Step)
	}
}

func TestARelayedSumCountsWhereAnOwnerWasLostAfterSomeOfItsSlices(t *testing.T) {
	l, k := withTables, 2
	all, closed := workers(t, 2, k, l)
	defer closed()
	s := newStep(1, k, l)
	whole := s.held(ids(k))[0]
	first := l.share(0, 2)
	floats, rows := first.pack(whole)
	sum, stats, err := l.unpack(first, k, floats, rows)
	if err != nil {
		t.Fatal(err)
	}
	all[1].mu.Lock()
	all[1].gather(&wirepb.Slice{Round: 1, Hi: int32(k), Finished: true, Count: 2, Measured: []*wirepb.Measured{s.sum(0).Measured}}, sum, stats)
	all[1].mu.Unlock()
	all[0].Relay(1, s.sum(0), []int{1})
	if got := next(t, all[1]); !equal(got, s.sum(0)) {
		t.Error("the relayed sum differs")
	}
}

func TestAWorkerWithoutTheTokenIsRejectedAndAnUnreachablePeerIsNamed(t *testing.T) {
	l := Layout{Dense: 10, Minibatch: 1}
	all, closed := workers(t, 2, 1, l)
	defer closed()
	all[0].cfg.Token = "another job's"
	all[0].Begin(Round{Number: 3, Step: 0, Owners: ids(2)})
	if err := all[0].Contribute(newStep(0, 1, l).held([]int{0})); err != nil {
		t.Fatal(err)
	}
	select {
	case <-all[0].Wake():
	case <-time.After(patience.Medium):
		t.Fatal("nothing was reported")
	}
	if c, ok := all[0].PeerError(); !ok || c.Peer != 1 || c.Round != 3 {
		t.Errorf("%+v", c)
	}
}

// The formula of the design: (subtrees held)·S·(N−1)/N + S·(N−1)/N, for each worker and step.
func TestTheBytesSentAreThoseOfTheFormula(t *testing.T) {
	l := Layout{Dense: 64 * 840, Minibatch: 1}
	const k = 8
	for _, n := range []int{1, 2, 4, 8} {
		t.Run(fmt.Sprint(n, " workers"), func(t *testing.T) {
			all, closed := workers(t, n, k, l)
			defer closed()
			s := newStep(0, k, l)
			subtrees := make([]int, n)
			for id, e := range all {
				var virtual []int
				for v := range k {
					if v*n/k == id {
						virtual = append(virtual, v)
					}
				}
				held := s.held(virtual)
				subtrees[id] = len(held)
				e.Begin(Round{Number: 1, Step: 0, Owners: ids(n)})
				if err := e.Contribute(held); err != nil {
					t.Fatal(err)
				}
			}
			for _, e := range all {
				next(t, e)
			}
			for id, e := range all {
				want := int64((subtrees[id] + 1) * 4 * l.Dense * (n - 1) / n)
				got := sentBy(t, e, want)
				if got.Payload != want {
					t.Errorf("worker %d of %d sent %d bytes of values, %d expected", id, n, got.Payload, want)
				}
				if got.Framing > got.Payload/100 {
					t.Errorf("worker %d of %d: %d bytes around %d of values", id, n, got.Framing, got.Payload)
				}
			}
		})
	}
}

// sentBy waits until everything that has been delivered is counted.
func sentBy(t *testing.T, e *Exchange, payload int64) Traffic {
	t.Helper()
	eventually.True(t, fmt.Sprint(payload, " bytes sent"), func() bool { return e.Traffic().Payload >= payload })
	return e.Traffic()
}
