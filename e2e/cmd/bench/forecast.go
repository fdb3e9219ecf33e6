package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// forecastGoal bounds one forecast of a training job of nine pods on 5,000 nodes with 50,000 pods.
const forecastGoal = time.Second

// measureForecast runs the forecast's own benchmark in a process of its own, whose greatest memory is that of the
// snapshot and the answer together; what reading a cluster takes is not in it.
func measureForecast(ctx context.Context, o options) ([]figure, error) {
	directory, err := os.MkdirTemp("", "bench-forecast-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(directory) //nolint:errcheck // what is left lies in the temporary directory
	program := filepath.Join(directory, "forecast.test")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-o", program, "./internal/scheduler/forecast")
	build.Dir = o.root
	if output, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%v: %w\n%s", build.Args, err, output)
	}
	var figures []figure
	for _, size := range []string{"500_nodes_5000_pods", "5000_nodes_50000_pods"} {
		results, command, err := goBenchmarks(ctx, o.root, program, "-test.run", "^$", "-test.bench", "^BenchmarkMake$/^"+size+"$", "-test.benchtime", "3x", "-test.count", strconv.Itoa(o.rounds))
		if err != nil {
			return nil, err
		}
		seconds := results.seconds[results.names[0]]
		memory := ""
		if usage, ok := command.ProcessState.SysUsage().(*syscall.Rusage); ok {
			memory = fmt.Sprintf(", peak memory %d MB with the snapshot", usage.Maxrss>>10)
		}
		figures = append(figures, ratios("forecast, "+size, "≤ 1", fmt.Sprintf("%v; median %.2f s%s", forecastGoal, medianOf(seconds), memory), against(forecastGoal.Seconds(), seconds)))
	}
	return figures, nil
}
