package nn

import "github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"

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
