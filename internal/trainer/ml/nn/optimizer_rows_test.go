package nn_test

import (
	"math"
	"slices"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/gradient"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
)

// walksTable reports whether Keras' rule for rows changes what has no gradient: the weights or a slot.
func walksTable(o graph.Optimizer) bool {
	return o.Kind == graph.Adam || o.Kind == graph.RMSProp && o.Momentum == 0
}

func TestOptimizersOfTables(t *testing.T) {
	for _, o := range testOptimizers {
		t.Run(o.String()+": twenty updates of rows are those of its formula in float64, and other rows stay to the bit unless Keras moves them", func(t *testing.T) {
			const rows, width = 13, 3
			m := model(2).dense(3).ids(2).embedding(rows, width).flatten().merge(graph.Concatenate, 1).dense(5).build()
			m.Optimizer = o
			n := compile(t, m, kernel.Portable(), 1, 1)
			state, table := randomState(n), n.Tables()[0]
			weights := state[table.Offset:][:rows*width]
			want, slots := make([]float64, rows*width), make([][2]float64, rows*width)
			for i := range want {
				want[i], slots[i][0] = float64(weights[i]), o.Initial
			}
			for step := range 20 {
				sum := gradient.Sum{Dense: make([]float32, n.TrainableSize()), Rows: make([]gradient.Rows, 1)}
				before, touched := slices.Clone(weights), map[int]float64{}
				for row := step % 3; row < rows-2; row += 2 + step%4 { // the last two never
					sum.Rows[0].Index = append(sum.Rows[0].Index, int32(row))
					for i := range width {
						g := float32(math.Sin(float64(i*7+row*5+step*3))) * float32(i+1)
						sum.Rows[0].Values = append(sum.Rows[0].Values, g)
						touched[row*width+i] = float64(g)
					}
				}
				if err := n.Apply(state, sum, nil, int64(step)); err != nil {
					t.Fatal(err)
				}
				for i := range want {
					g, has := touched[i]
					if has || walksTable(o) {
						want[i] = referenceUpdate(o, want[i], g, &slots[i], step+1)
					}
					if !has && o.Kind != graph.Adam && weights[i] != before[i] {
						t.Fatalf("step %d: element %d went from %v to %v without a gradient", step, i, before[i], weights[i])
					}
				}
			}
			for i, w := range want {
				if math.Abs(float64(weights[i])-w) > 1e-5*(1+math.Abs(w)) {
					t.Fatalf("element %d is %v, want %v", i, weights[i], w)
				}
			}
			for i, slot := range optimizerSlots(o) {
				values := state[table.Offset+(i+1)*rows*width:][:rows*width]
				for at, v := range values {
					if s := slots[at][slot]; math.Abs(float64(v)-s) > 1e-5*(1+math.Abs(s)) {
						t.Fatalf("slot %d of element %d is %v, want %v", i, at, v, s)
					}
				}
			}
		})
		t.Run(o.String()+": training with tables has one hash with any kernel and number of threads, and the loss falls", func(t *testing.T) {
			m := testModels["rows of three tables, two of them for one input, beside numbers"]()
			m.Optimizer = o
			want := ""
			for threads, set := range kernel.Available() {
				state, losses := train(t, m, set, threads+1, 30)
				if losses[29] >= losses[2] {
					t.Errorf("the loss went from %v to %v", losses[2], losses[29])
				}
				if want == "" {
					want = hash(state)
				}
				if hash(state) != want {
					t.Errorf("%s ends in state %s, %s in %s", set.Name, hash(state), kernel.Available()[0].Name, want)
				}
			}
		})
	}
}

// optimizerSlots are the places in referenceUpdate's slots of those that the state has.
func optimizerSlots(o graph.Optimizer) []int {
	switch {
	case o.Kind == graph.SGD && o.Momentum == 0:
		return nil
	case o.Kind == graph.Adam || o.Kind == graph.AdaMax || o.Kind == graph.RMSProp && o.Momentum > 0:
		return []int{0, 1}
	}
	return []int{0}
}
