package nn

import (
	"fmt"
	"math"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/philox"
)

// Init fills the state with Keras' initial values: kernels Glorot-uniform, embeddings uniform, gamma and moving
// variance 1, the other variables 0, and the optimizer's slots what it begins with.
// Element i (in Keras' layout) of the variable at that position in Params is (2u − 1)·limit, rounded once, u being
// the uniform number of philox' element i and limit = √(6/(fan_in + fan_out)) in float64, rounded once; of embeddings
// 0.05. Embeddings with a standard deviation have that times the truncated normal distribution's quantile at u, rounded
// once.
func (n *Network) Init(state []float32, seed uint64) {
	if len(state) != n.state {
		panic(fmt.Sprintf("nn: Init with a state of %d floats for a network of %d", len(state), n.state))
	}
	key := philox.NewKey(seed, philox.Init)
	for position, p := range n.params {
		values := state[p.Offset : p.Offset+p.Size]
		switch kind := p.Name[strings.LastIndexByte(p.Name, '/')+1:]; kind {
		case "kernel", "embeddings":
			area := elements(p.Shape[:len(p.Shape)-2])
			fans := area * (p.Shape[len(p.Shape)-2] + p.Shape[len(p.Shape)-1])
			limit := float32(math.Sqrt(6 / float64(fans)))
			if kind == "embeddings" {
				limit = embeddingLimit
			}
			index := philox.Index{uint32(position)}
			for i := range values {
				u := philox.Float32(key.Element(index, uint64(i)))
				if p.stddev > 0 {
					values[p.inState(i)] = float32(truncatedNormal(float64(u)) * p.stddev)
					continue
				}
				values[p.inState(i)] = (float32(2*u) - 1) * limit // 2u − 1 is exact
			}
		case "gamma", "moving_variance":
			for i := range values {
				values[i] = 1
			}
		default:
			clear(values)
		}
	}
	for i, slot := range n.optimizer.slots {
		values := n.slotOf(state, i)
		for at := range values {
			values[at] = slot.initial
		}
		for _, e := range n.embeddings {
			values := e.slotOf(state, i)
			for at := range values {
				values[at] = slot.initial
			}
		}
	}
}

// inState is where element i of Keras' layout stands in the state's.
func (p *Param) inState(i int) int {
	if !p.Transposed {
		return i
	}
	in, out := p.Shape[0], p.Shape[1]
	return i%out*in + i/out
}
