package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Bounds of one decision cycle and one what-if of the quota engine: without a topology, and with one of three levels.
const (
	queueGoal    = 100 * time.Millisecond
	topologyGoal = time.Second
)

// measureQueues runs the quota engine's own benchmarks: one cycle over 1,000 queues with 10,000 workloads, and the
// question what would become of one more.
func measureQueues(ctx context.Context, o options) ([]figure, error) {
	results, _, err := goBenchmarks(ctx, o.root, "go", "test", "-run", "^$", "-bench", "^Benchmark(Cycle|WhatIf)$", "-benchtime", "5x",
		"-count", strconv.Itoa(o.rounds), "./internal/scheduler/quota")
	if err != nil {
		return nil, err
	}
	figures := make([]figure, 0, len(results.names))
	for _, name := range results.names {
		benchmark, which, _ := strings.Cut(name, "/")
		what := map[string]string{"Cycle": "decision cycle", "WhatIf": "what-if"}[benchmark] + ", " + strings.ReplaceAll(which, "_", " ")
		goal := queueGoal
		if strings.Contains(which, "nodes") {
			goal = topologyGoal
		}
		seconds := results.seconds[name]
		detail := fmt.Sprintf("%v; ten workloads in each queue, median %.1f ms", goal, 1000*medianOf(seconds))
		figures = append(figures, ratios(what, "≤ 1", detail, against(goal.Seconds(), seconds)))
		if tenth := results.seconds[benchmark+"/100_queues,_three_levels_over_500_nodes"]; goal == topologyGoal && strings.HasPrefix(which, "1000") && len(tenth) > 0 {
			figures = append(figures, growth(what, tenth, seconds))
		}
	}
	return figures, nil
}
