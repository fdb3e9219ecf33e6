package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// certainShare is the goal for the share of forecasts whose outcome, and whose evictions, are certain.
const certainShare = 0.95

// certaintyLine is a result of the benchmark, and metric one of its numbers.
var (
	certaintyLine = regexp.MustCompile(`(?m)^BenchmarkCertainty/(\d+)_nodes_(\d+)_workers\S*\s(.*)$`)
	metric        = regexp.MustCompile(`([\d.e+-]+) ([a-z-]+)`)
)

// measureCertainty counts, for gangs of several sizes in clusters that are nearly full, of how many forecasts the outcome and the
// evictions are certain.
func measureCertainty(ctx context.Context, o options) ([]figure, error) {
	program, remove, err := buildForecastTests(ctx, o.root)
	if err != nil {
		return nil, err
	}
	defer remove()
	run := exec.CommandContext(ctx, program, "-test.run", "^$", "-test.bench", "^BenchmarkCertainty$", "-test.benchtime", "1x", "-test.timeout", "0")
	output, err := run.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%v: %w\n%s", run.Args, err, output)
	}
	return certainties(string(output))
}

// certainties reads the results: the lesser of the two shares counts.
func certainties(output string) (figures []figure, err error) {
	for _, line := range certaintyLine.FindAllStringSubmatch(output, -1) {
		values := map[string]float64{}
		for _, m := range metric.FindAllStringSubmatch(line[3], -1) {
			if values[m[2]], err = strconv.ParseFloat(m[1], 64); err != nil {
				return nil, fmt.Errorf("a result of the certainty: %w", err)
			}
		}
		detail := fmt.Sprintf("%.0f %% of the forecasts; outcome %.0f %%, evictions %.0f %%; median %.2f s, longest %.1f s",
			100*certainShare, 100*values["outcomes"], 100*values["evictions"], values["median-s"], values["longest-s"])
		figures = append(figures, ratios(fmt.Sprintf("certain, %s nodes, %s workers", line[1], line[2]), "≥ 1", detail, []float64{min(values["outcomes"], values["evictions"]) / certainShare}))
	}
	if len(figures) == 0 {
		return nil, fmt.Errorf("there is no result of the certainty in:\n%s", strings.TrimSpace(output))
	}
	return figures, nil
}

// buildForecastTests builds the tests of package forecast, with its benchmarks.
func buildForecastTests(ctx context.Context, root string) (program string, remove func(), err error) {
	directory, err := os.MkdirTemp("", "bench-forecast-")
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(directory) } // what is left lies in the temporary directory
	program = filepath.Join(directory, "forecast.test")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-o", program, "./internal/scheduler/forecast")
	build.Dir = root
	if output, err := build.CombinedOutput(); err != nil {
		remove()
		return "", nil, fmt.Errorf("%v: %w\n%s", build.Args, err, output)
	}
	return program, remove, nil
}
