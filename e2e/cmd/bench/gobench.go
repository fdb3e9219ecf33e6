package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
)

// benchmarkLine is a result of go test -bench: name, number of CPUs, iterations, time of each.
var benchmarkLine = regexp.MustCompile(`(?m)^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+([\d.]+) ns/op`)

// timings are the seconds per operation of Go benchmarks: a sample for each run of each, by name.
type timings struct {
	names   []string // in the order of their first results
	seconds map[string][]float64
}

// goBenchmarks runs Go benchmarks and reads their timings. Without any it fails.
func goBenchmarks(ctx context.Context, dir string, command ...string) (timings, *exec.Cmd, error) {
	run := exec.CommandContext(ctx, command[0], command[1:]...)
	run.Dir = dir
	output, err := run.CombinedOutput()
	if err != nil {
		return timings{}, run, fmt.Errorf("%v: %w\n%s", command, err, output)
	}
	read := timings{seconds: map[string][]float64{}}
	for _, match := range benchmarkLine.FindAllSubmatch(output, -1) {
		nanoseconds, err := strconv.ParseFloat(string(match[2]), 64)
		if err != nil {
			return timings{}, run, fmt.Errorf("a result of %v: %w", command, err)
		}
		name := string(match[1])
		if len(read.seconds[name]) == 0 {
			read.names = append(read.names, name)
		}
		read.seconds[name] = append(read.seconds[name], nanoseconds/1e9)
	}
	if len(read.names) == 0 {
		return timings{}, run, fmt.Errorf("%v printed no result:\n%s", command, output)
	}
	return read, run, nil
}

// growth is how much longer something takes at ten times the size, against n·log n for some thousand things.
func growth(name string, tenth, seconds []float64) figure {
	const expected = 10 * 4.0 / 3 // 10·log(10,000)/log(1,000)
	short := medianOf(tenth)
	return ratios(name+", growth from a tenth", "≤ 1", fmt.Sprintf("n·log n, which is %.1f times; a tenth takes %.1f ms", expected, 1000*short), against(short*expected, seconds))
}

// against are samples as shares of a goal in seconds.
func against(goal float64, seconds []float64) []float64 {
	shares := make([]float64, len(seconds))
	for i, s := range seconds {
		shares[i] = s / goal
	}
	return shares
}
