package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// queueGoal bounds one decision cycle and one what-if of the quota engine.
const queueGoal = 100 * time.Millisecond

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
		seconds := results.seconds[name]
		detail := fmt.Sprintf("%v; 10,000 workloads, median %.1f ms", queueGoal, 1000*medianOf(seconds))
		figures = append(figures, ratios(what, "≤ 1", detail, against(queueGoal.Seconds(), seconds)))
	}
	return figures, nil
}
