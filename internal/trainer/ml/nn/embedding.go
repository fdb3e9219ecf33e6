package nn

import (
	"fmt"
	"math"
	"slices"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/gradient"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// embeddingLimit is that of Keras' initializer "uniform": from −0.05 to 0.05.
const embeddingLimit = 0.05

// embedding looks rows of a table up. Its gradient is one row for each that the minibatch looked up, ascending: the
// output's gradients there, added in the order of the records, and in a record of the lookups, from the first on.
type embedding struct {
	n           *Network
	name        string
	ids         *input
	out, dOut   *tensor
	rows, width int
	table       Param
	lookups     []uint64 // of the minibatch: row, then place, ascending
	starts      []int32  // where each row's lookups begin in it, and its end
}

func (c *compiler) addEmbedding(node *graph.Node) error {
	a := node.Embedding
	switch {
	case a == nil:
		return fmt.Errorf("its attributes are missing")
	case a.InputDim < 1 || a.OutputDim < 1 || a.InputDim > 1<<31-1:
		return fmt.Errorf("a table of %d rows of %d floats", a.InputDim, a.OutputDim)
	case !(a.Stddev >= 0) || math.IsInf(a.Stddev, 0):
		return fmt.Errorf("initial values with a standard deviation of %v", a.Stddev)
	}
	if err := wantShape(node, append(slices.Clone(c.shape), a.OutputDim)...); err != nil {
		return err
	}
	e := &embedding{n: c.n, name: node.Name, ids: c.ids, rows: a.InputDim, width: a.OutputDim}
	e.ids.readers = append(e.ids.readers, e)
	e.table = Param{Name: node.Name + "/embeddings", Shape: []int{e.rows, e.width}, Size: e.rows * e.width, Trainable: true, stddev: a.Stddev}
	c.output(e.ids.size * e.width)
	c.ids, c.trainable = nil, true
	e.out, e.dOut = c.value, c.gradient
	e.dOut.perThread = false // read once more when all blocks are done
	most := c.n.options.MaxBatch * e.ids.size
	e.lookups, e.starts = make([]uint64, 0, most), make([]int32, 0, min(most, e.rows)+1)
	c.n.embeddings = append(c.n.embeddings, e)
	c.compute(e.forward)
	return nil
}

// addTables gives the tables their places in the state, behind everything else, and adds the phases of their gradients.
func (c *compiler) addTables() {
	n := c.n
	var sorts []func()
	for i, e := range n.embeddings {
		e.table.Offset = n.state
		n.state += e.table.Size * (1 + len(n.slots))
		n.params = append(n.params, e.table)
		n.tables = append(n.tables, gradient.Table{Name: e.table.Name, Rows: e.rows, Width: e.width, Offset: e.table.Offset, Lookups: e.ids.size})
		sorts = append(sorts, func() { e.sort(&n.run.rows[i]) })
	}
	if len(sorts) > 0 {
		c.final = append(c.final, each(sorts))
	}
	for i, e := range n.embeddings {
		c.final = append(c.final, e.sums(i))
	}
}

func (e *embedding) weights(state []float32) []float32 { return state[e.table.Offset:][:e.table.Size] }

// slotOf is the table's slot i of the state.
func (e *embedding) slotOf(state []float32, i int) []float32 {
	return state[e.table.Offset+(i+1)*e.table.Size:][:e.table.Size]
}

// row is a row of the table or of a slot.
func (e *embedding) row(table []float32, row int32) []float32 {
	return table[int(row)*e.width:][:e.width]
}

func (e *embedding) forward(t *thread, s span) {
	out, table := e.out.record(t, s.from), e.weights(e.n.run.state)
	for i, id := range e.ids.ids[s.from*e.ids.size:][:e.ids.size] {
		copy(out[i*e.width:], e.row(table, id))
	}
}

// sort finds the rows that the minibatch looked up, and makes room for their gradients.
func (e *embedding) sort(rows *gradient.Rows) {
	e.lookups = e.lookups[:0]
	for place, id := range e.ids.ids {
		e.lookups = append(e.lookups, uint64(id)<<32|uint64(place))
	}
	slices.Sort(e.lookups)
	rows.Index, e.starts = rows.Index[:0], e.starts[:0]
	for i, lookup := range e.lookups {
		if row := int32(lookup >> 32); len(rows.Index) == 0 || rows.Index[len(rows.Index)-1] != row {
			rows.Index, e.starts = append(rows.Index, row), append(e.starts, int32(i))
		}
	}
	e.starts = append(e.starts, int32(len(e.lookups)))
	size := len(rows.Index) * e.width
	rows.Values = slices.Grow(rows.Values[:0], size)[:size]
}

// rowsAtOnce is how many rows' gradients are a unit of work.
const rowsAtOnce = 64

// sums is the phase that adds the gradients of table number i.
func (e *embedding) sums(i int) phase {
	return phase{
		units: func(n *Network) int { return (len(n.run.rows[i].Index) + rowsAtOnce - 1) / rowsAtOnce },
		run: func(_ *thread, unit int) {
			rows := &e.n.run.rows[i]
			for k := unit * rowsAtOnce; k < min((unit+1)*rowsAtOnce, len(rows.Index)); k++ {
				sum := e.row(rows.Values, int32(k))
				for at, lookup := range e.lookups[e.starts[k]:e.starts[k+1]] {
					if d := e.row(e.dOut.data, int32(uint32(lookup))); at == 0 {
						copy(sum, d)
					} else {
						e.n.kernel.Add(sum, d)
					}
				}
			}
		},
	}
}

// check refuses rows that the table does not have.
func (e *embedding) check(r gradient.Rows) error {
	if len(r.Values) != len(r.Index)*e.width {
		return fmt.Errorf("table %q: %d values for %d rows of %d", e.table.Name, len(r.Values), len(r.Index), e.width)
	}
	for _, row := range r.Index {
		if row < 0 || int(row) >= e.rows {
			return fmt.Errorf("table %q: row %d of %d", e.table.Name, row, e.rows)
		}
	}
	return nil
}

// checkFinite looks at what an update has changed of the table and its slots.
func (e *embedding) checkFinite(state []float32, r gradient.Rows, step int64) error {
	finite := func(values []float32, whole bool) bool {
		if whole {
			return e.n.kernel.Finite(values)
		}
		return !slices.ContainsFunc(r.Index, func(row int32) bool { return !e.n.kernel.Finite(e.row(values, row)) })
	}
	if !finite(e.weights(state), e.n.optimizer.walks) {
		return fmt.Errorf("step %d: variable %q is %w after the update: training diverged; a lower learning rate may help", step, e.table.Name, ErrNotFinite)
	}
	for i, slot := range e.n.optimizer.slots {
		if !finite(e.slotOf(state, i), false) {
			return fmt.Errorf("step %d: the optimizer's %s of %q is %w after the update: the gradient is too large; a lower learning rate may help", step, slot.name, e.table.Name, ErrNotFinite)
		}
	}
	return nil
}
