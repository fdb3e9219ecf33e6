package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/conformance"
)

// measureKueue compares the engine with Kueue's own scheduler, both in process and without writing to an API: twelve cycles
// over 1,000 queues with 10,000 workloads and a topology of three levels over 5,000 nodes. Both must admit equally many.
func measureKueue(ctx context.Context, o options) ([]figure, error) {
	recorder := filepath.Join(o.root, "bin", "kueuerecord")
	if _, err := os.Stat(recorder); err != nil {
		return nil, errSkipped{"bin/kueuerecord is not there; tools/build.sh e2e/kueuedecisions kueuerecord ./cmd/kueuerecord builds it, with Kueue"}
	}
	const queues, cycles = "1000", 12
	draw := exec.CommandContext(ctx, "go", "-C", filepath.Join(o.root, "e2e", "kueuedecisions"), "run", "./cmd/kueuescenarios", "-large", queues)
	draw.Stderr = o.log
	text, err := draw.Output()
	if err != nil {
		return nil, fmt.Errorf("%v: %w", draw.Args, err)
	}
	scenario, err := conformance.Parse(text)
	if err != nil {
		return nil, err
	}
	theirs, err := kueueCycles(ctx, o, recorder, text, cycles)
	if err != nil {
		return nil, err
	}
	var total, slowest []float64
	for range o.rounds {
		ours, err := conformance.Cycles(scenario, cycles)
		if err != nil {
			return nil, err
		}
		for i := range ours {
			if ours[i].Admitted != theirs[i].Admitted {
				return nil, fmt.Errorf("after cycle %d, %d workloads hold quota, but %d with Kueue", i+1, ours[i].Admitted, theirs[i].Admitted)
			}
		}
		all, most := sumAndMost(ours)
		total, slowest = append(total, all), append(slowest, most)
	}
	all, most := sumAndMost(theirs)
	return []figure{
		ratios("cycles as Kueue's scheduler, 1000 queues, three levels over 5000 nodes", "≤ 1",
			fmt.Sprintf("Kueue's %.2f s for %d cycles, of which the slowest takes %.2f s; median %.2f s", all, cycles, most, medianOf(total)), against(all, total)),
		ratios("the slowest of these cycles", "≤ 1", fmt.Sprintf("%v; median %.0f ms", topologyGoal, 1000*medianOf(slowest)), against(topologyGoal.Seconds(), slowest)),
	}, nil
}

// kueueCycles are the timings of Kueue's scheduler.
func kueueCycles(ctx context.Context, o options, recorder string, scenario []byte, cycles int) ([]conformance.Timing, error) {
	run := exec.CommandContext(ctx, recorder, "-cycles", fmt.Sprint(cycles))
	run.Stdin, run.Stderr = bytes.NewReader(scenario), o.log
	output, err := run.Output()
	if err != nil {
		return nil, fmt.Errorf("%v: %w", run.Args, err)
	}
	var result struct {
		Cycles []conformance.Timing `json:"cycles"`
	}
	if err := json.Unmarshal(output, &result); err != nil {
		return nil, fmt.Errorf("the result of %v: %w", run.Args, err)
	}
	if len(result.Cycles) != cycles {
		return nil, fmt.Errorf("%v measured %d cycles, not %d", run.Args, len(result.Cycles), cycles)
	}
	return result.Cycles, nil
}

func sumAndMost(timings []conformance.Timing) (sum, most float64) {
	seconds := make([]float64, len(timings))
	for i, t := range timings {
		seconds[i] = t.Seconds
		sum += t.Seconds
	}
	return sum, slices.Max(seconds)
}
