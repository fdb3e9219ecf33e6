package nn

import (
	"fmt"
	"math"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
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

// truncatedNormal turns a uniform number of [0, 1) into one of the normal distribution between −2 and 2: P. J. Acklam's
// approximation of the quantile function, whose relative error is below 1.2e-9. Every operation is rounded by itself.
func truncatedNormal(u float64) float64 {
	const (
		below = 0.022750131948179195 // of the distribution is below −2
		share = 0.9544997361036416   // is between −2 and 2
		tail  = 0.02425              // where the approximation changes
	)
	p := below + float64((u+1.0/(1<<25))*share)
	polynomial := func(x float64, coefficients ...float64) float64 {
		y := 0.0
		for _, c := range coefficients {
			y = float64(y*x) + c
		}
		return y
	}
	outside := func(p float64) float64 {
		q := math.Sqrt(-2 * kernel.Log(p))
		return polynomial(
			q, -7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00, -2.549732539343734e+00,
			4.374664141464968e+00, 2.938163982698783e+00,
		) /
			polynomial(q, 7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00, 3.754408661907416e+00, 1)
	}
	switch {
	case p < tail:
		return outside(p)
	case p > 1-tail:
		return -outside(1 - p)
	}
	q := p - 0.5
	r := float64(q * q)
	return float64(polynomial(
		r, -3.969683028665376e+01, 2.209460984245205e+02, -2.759285104469687e+02, 1.383577518672690e+02,
		-3.066479806614716e+01, 2.506628277459239e+00,
	)*q) /
		polynomial(r, -5.447609879822406e+01, 1.615858368580409e+02, -1.556989798598866e+02, 6.680131188771972e+01, -1.328068155288572e+01, 1)
}
