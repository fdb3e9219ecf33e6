package nn

import "github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"

// A program is phases with a barrier between any two. In a phase threads take units one by one; which thread takes
// which has no influence on the result.
type program []phase

type phase struct {
	units func(n *Network) int // how many units the phase has
	run   func(t *thread, unit int)
	after func() // by one thread, when all units are done; may be nil
}

// An operation works on records from … to of a block of the minibatch.
type operation struct {
	perRecord bool // called record by record, together with its neighbours, so that what they share stays in cache
	run       func(t *thread, s span)
}

// span is a part of a block.
type span struct {
	block    int
	from, to int
	first    bool // it begins the block: sums over records start here
}

// thread is what belongs to one of the threads.
type thread struct{ id int }

// tensor is an array per record: of the whole minibatch, or of the record that each thread is working on.
type tensor struct {
	data      []float32
	size      int // floats per record
	perThread bool
}

// record is the array of record r.
func (x *tensor) record(t *thread, r int) []float32 {
	if x.perThread {
		r = t.id
	}
	return x.data[r*x.size:][:x.size:x.size]
}

// records is the array of several records; the tensor is not one per thread.
func (x *tensor) records(from, to int) []float32 { return x.data[from*x.size : to*x.size] }

func (n *Network) execute(p program) {
	for i := range p {
		ph := &p[i]
		n.threads.do(ph, ph.units(n))
		if ph.after != nil {
			ph.after()
		}
	}
}

// overBlocks is the phase that takes operations over the blocks of a minibatch.
func (n *Network) overBlocks(operations []operation, after func()) phase {
	return phase{
		units: func(n *Network) int { return kernel.Blocks(n.run.records) },
		run: func(t *thread, block int) {
			from, to := kernel.Block(n.run.records, block)
			for i := 0; i < len(operations); {
				if !operations[i].perRecord {
					operations[i].run(t, span{block, from, to, true})
					i++
					continue
				}
				end := i
				for end < len(operations) && operations[end].perRecord {
					end++
				}
				for r := from; r < to; r++ {
					for _, op := range operations[i:end] {
						op.run(t, span{block, r, r + 1, r == from})
					}
				}
				i = end
			}
		},
		after: after,
	}
}

// each is the phase whose units are the functions themselves.
func each(units []func()) phase {
	return phase{
		units: func(*Network) int { return len(units) },
		run:   func(_ *thread, i int) { units[i]() },
	}
}

// sumChunk is how many floats of a gradient are a unit of work: what stays in the first cache level.
const sumChunk = 4096

// sumOfBlocks is the phase that adds the blocks' gradients in order into the gradient, from that offset on.
func (n *Network) sumOfBlocks(sums *[]float32, offset, size int) phase {
	return phase{
		units: func(*Network) int { return (size + sumChunk - 1) / sumChunk },
		run: func(_ *thread, unit int) {
			from := unit * sumChunk
			to := min(from+sumChunk, size)
			out := n.run.gradient[offset+from : offset+to]
			copy(out, (*sums)[from:to])
			for block := 1; block < kernel.Blocks(n.run.records); block++ {
				n.kernel.Add(out, (*sums)[block*size+from:block*size+to])
			}
		},
	}
}

// arena hands out parts of one array. Parts begin at multiples of 16 floats, a cache line, and are zero.
type arena struct {
	size    int
	pending []reservation
}

type reservation struct {
	into   *[]float32
	offset int
	length int
}

// reserve asks for a part of that many floats, which *into is when allocate returns.
func (a *arena) reserve(into *[]float32, length int) {
	a.pending = append(a.pending, reservation{into, a.size, length})
	a.size += (length + 15) &^ 15
}

func (a *arena) allocate() {
	all := make([]float32, a.size)
	for _, r := range a.pending {
		*r.into = all[r.offset : r.offset+r.length : r.offset+r.length]
	}
	a.pending = nil
}
