package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"time"
)

// queueGoal bounds one decision cycle and one what-if of the quota engine.
const queueGoal = 100 * time.Millisecond

// benchmarkLine is a result of go test -bench: name, number of CPUs, iterations, time of each.
var benchmarkLine = regexp.MustCompile(`(?m)^Benchmark(\w+)/(\S+?)(?:-\d+)?\s+\d+\s+([\d.]+) ns/op`)

// measureQueues runs the quota engine's own benchmarks: one cycle over 1,000 queues with 10,000 workloads, and the
// question what would become of one more.
func measureQueues(ctx context.Context, o options) ([]figure, error) {
	command := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^Benchmark(Cycle|WhatIf)$", "-benchtime", "5x",
		"-count", strconv.Itoa(o.rounds), "./internal/scheduling/quota")
	command.Dir = o.root
	output, err := command.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%v: %w\n%s", command.Args, err, output)
	}
	var names []string
	seconds := map[string][]float64{}
	for _, match := range benchmarkLine.FindAllSubmatch(output, -1) {
		what := map[string]string{"Cycle": "decision cycle", "WhatIf": "what-if"}[string(match[1])]
		name := what + ", " + string(bytes.ReplaceAll(match[2], []byte("_"), []byte(" ")))
		nanoseconds, err := strconv.ParseFloat(string(match[3]), 64)
		if err != nil {
			return nil, fmt.Errorf("a result of %v: %w", command.Args, err)
		}
		if len(seconds[name]) == 0 {
			names = append(names, name)
		}
		seconds[name] = append(seconds[name], nanoseconds/1e9)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%v printed no result:\n%s", command.Args, output)
	}
	figures := make([]figure, 0, len(names))
	for _, name := range names {
		samples := make([]float64, len(seconds[name]))
		for i, s := range seconds[name] {
			samples[i] = s / queueGoal.Seconds()
		}
		figures = append(figures, ratios(name, "≤ 1", fmt.Sprintf("%v; 10,000 workloads, median %.1f ms", queueGoal, 1000*medianOf(seconds[name])), samples))
	}
	return figures, nil
}
