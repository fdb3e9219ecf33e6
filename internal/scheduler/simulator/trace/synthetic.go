package trace

import (
	"cmp"
	"fmt"
	"math/bits"
	"math/rand/v2"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"
)

// What Philly was, by its paper (Jeon et al., ATC '19): so many jobs in so many days, of so many virtual clusters.
const (
	phillyCount   = 117_325
	phillySeconds = 137 * 24 * 3600
	phillyNodes   = 309 // of eight GPUs
	phillyGroups  = 14
)

// sizes are numbers of GPUs, and how many of a thousand jobs have them.
var sizes = []struct{ gpus, weight int }{{1, 760}, {2, 60}, {4, 70}, {8, 85}, {16, 20}, {32, 5}}

// lengths[k] is how many of a thousand jobs run for 2^(k+6) to 2^(k+7) seconds: one minute to twelve days, half of them
// for less than twenty minutes. The few long ones hold most of the GPUs, about two thirds of all there are.
var lengths = []int{125, 110, 100, 90, 80, 70, 60, 60, 60, 60, 55, 45, 45, 40}

// synthetic draws jobs like Philly's. Fewer of them come at the same rate for a shorter time.
func (b *builder) synthetic() error {
	count := cmp.Or(b.trace.Limit, phillyCount)
	if !b.nodesGiven {
		nodes := phillyNodes
		group := scenariofile.NodeGroup{Name: "node", Count: &nodes, Allocatable: scenariofile.Resources{gpu: quantity(8)}}
		group.Complete()
		b.scenario.Nodes = []scenariofile.NodeGroup{group}
	}
	random := rand.New(rand.NewPCG(b.scenario.Seed, 0x70_68_69_6c_6c_79))
	requests := map[int64]scenariofile.Resources{}
	for i := range count {
		k, s := pick(random, len(lengths), func(k int) int { return lengths[k] }), pick(random, len(sizes), func(s int) int { return sizes[s].weight })
		gpus, pods := int64(sizes[s].gpus), int64(1)
		if gpus > 8 {
			pods, gpus = gpus/8, 8
		}
		if requests[gpus] == nil {
			requests[gpus] = scenariofile.Resources{gpu: quantity(gpus)}
		}
		// Arrivals are uniform over the time, which for so many is what a Poisson process looks like.
		high, _ := bits.Mul64(random.Uint64(), uint64(phillySeconds)*uint64(count)/phillyCount)
		err := b.add(row{
			name: fmt.Sprintf("job-%06d", i), group: fmt.Sprintf("vc%d", random.IntN(phillyGroups)), important: random.IntN(5) == 0,
			submitted: int64(high), runs: 64<<k + random.Int64N(64<<k), pods: int(pods), requests: requests[gpus],
		})
		if err != nil {
			return fmt.Errorf("synthetic trace: %w", err)
		}
	}
	return nil
}

// pick draws an index by weights, which add up to a thousand.
func pick(random *rand.Rand, n int, weight func(i int) int) int {
	left := random.IntN(1000)
	for i := range n {
		if left -= weight(i); left < 0 {
			return i
		}
	}
	return n - 1
}
