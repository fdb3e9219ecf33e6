package main

import (
	"context"
	"fmt"
	"strconv"
	"syscall"
	"time"
)

// forecastSize is a benchmark of package forecast at one size, with its goal.
type forecastSize struct {
	benchmark, size string
	goal            time.Duration
}

// forecastSizes are forecasts of a training job of nine pods among ten pods on each node, and of a task of four pods in one
// rack in a queue, among queues with a topology of three levels.
var forecastSizes = []forecastSize{
	{"Make", "500_nodes_5000_pods", time.Second},
	{"Make", "5000_nodes_50000_pods", time.Second},
	{"MakeInQueues", "100_queues_1000_workloads_500_nodes", 2 * time.Second},
	{"MakeInQueues", "1000_queues_10000_workloads_5000_nodes", 2 * time.Second},
}

// measureForecast runs the forecast's own benchmark in a process of its own, whose greatest memory is that of the
// snapshot and the answer together; what reading a cluster takes is not in it.
func measureForecast(ctx context.Context, o options) ([]figure, error) {
	program, remove, err := buildForecastTests(ctx, o.root)
	if err != nil {
		return nil, err
	}
	defer remove()
	var figures []figure
	before := forecastSize{}
	var secondsBefore []float64
	for _, size := range forecastSizes {
		results, command, err := goBenchmarks(ctx, o.root, program, "-test.run", "^$", "-test.bench", "^Benchmark"+size.benchmark+"$/^"+size.size+"$", "-test.benchtime", "3x", "-test.count", strconv.Itoa(o.rounds))
		if err != nil {
			return nil, err
		}
		seconds := results.seconds[results.names[0]]
		memory := ""
		if usage, ok := command.ProcessState.SysUsage().(*syscall.Rusage); ok {
			memory = fmt.Sprintf(", peak memory %d MB with the snapshot", usage.Maxrss>>10)
		}
		detail := fmt.Sprintf("%v; median %.2f s%s", size.goal, medianOf(seconds), memory)
		figures = append(figures, ratios("forecast, "+size.size, "≤ 1", detail, against(size.goal.Seconds(), seconds)))
		if size.benchmark == before.benchmark {
			figures = append(figures, growth("forecast, "+size.size, secondsBefore, seconds))
		}
		before, secondsBefore = size, seconds
	}
	volumes, err := measureVolumes(ctx, o, program)
	return append(figures, volumes...), err
}

// measureVolumes compares the forecast of a gang beside pods that have volumes which every node can give with the same without.
func measureVolumes(ctx context.Context, o options, program string) ([]figure, error) {
	results, _, err := goBenchmarks(ctx, o.root, program, "-test.run", "^$", "-test.bench", "^BenchmarkVolumes$", "-test.benchtime", "3x", "-test.count", strconv.Itoa(o.rounds))
	if err != nil {
		return nil, err
	}
	without := medianOf(results.seconds["Volumes/without"])
	detail := fmt.Sprintf("the same without volumes, %.2f s", without)
	return []figure{ratios("forecast, inline CSI volumes", "≤ 1.1", detail, against(without, results.seconds["Volumes/inline"]))}, nil
}
