package main

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"
)

// What the simulator's own benchmarks run, in full and in a tenth of the size, with their goals.
var simulations = []struct {
	benchmark, what string
	size            float64 // jobs
	goal            time.Duration
}{
	{"Philly", "a trace of Philly's size, 117,325 jobs", 117_325, 10 * time.Second},
	{"Queues", "50,000 workloads over 1,000 queues", 50_000, 5 * time.Second},
	{"Preemption", "5,000 nodes, 20,000 low and 5,000 preempting pods", 25_000, 5 * time.Second},
}

// measureSimulator reports how long simulations take, and how their cost grows from a tenth of their size, where n log
// n is 1.
func measureSimulator(ctx context.Context, o options) ([]figure, error) {
	var figures []figure
	for _, s := range simulations {
		results, _, err := goBenchmarks(ctx, o.root, "go", "test", "-run", "^$", "-bench", "^Benchmark"+s.benchmark+"$", "-benchtime", "1x",
			"-count", strconv.Itoa(o.rounds), "./internal/scheduler/simulator")
		if err != nil {
			return nil, err
		}
		full, tenth := results.seconds[s.benchmark+"/part=1"], results.seconds[s.benchmark+"/part=10"]
		nLogN := 10 * math.Log(s.size) / math.Log(s.size/10)
		growth := make([]float64, min(len(full), len(tenth)))
		for i := range growth {
			growth[i] = full[i] / tenth[i] / nLogN
		}
		if len(growth) == 0 {
			return nil, fmt.Errorf("benchmark %s ran in one size only: %v", s.benchmark, results.names)
		}
		figures = append(figures,
			ratios("simulation, "+s.what, "≤ 1", fmt.Sprintf("%v; median %.2f s", s.goal, medianOf(full)), against(s.goal.Seconds(), full)),
			ratios("  growth from a tenth of it", "≤ 1", fmt.Sprintf("n log n, which is %.1f times; a tenth takes %.2f s", nLogN, medianOf(tenth)), growth))
	}
	return figures, nil
}
