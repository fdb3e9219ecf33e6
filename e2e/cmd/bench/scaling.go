package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"time"
)

const (
	scalingVirtualWorkers = 8
	scalingPace           = 400 * time.Millisecond // twice what eight processes take for a gradient each on two cores: with less, steps wait for a processor
	scalingGoal           = 0.10                   // of the time of a step
)

// measureScaling trains the tutorial's network with 1, 2, 4 and 8 paced workers, as a star and with gradients added
// between the workers, and reports how much longer a step takes than its gradients, and what a worker sends to others.
func measureScaling(ctx context.Context, o options) ([]figure, error) {
	var figures []figure
	for _, workers := range []int{1, 2, 4, 8} {
		for _, aggregation := range []string{"master", "allreduce"} {
			r, err := scale(ctx, o, workers, aggregation)
			if err != nil {
				return nil, fmt.Errorf("%d workers, aggregation %s: %w", workers, aggregation, err)
			}
			if len(r.steps) == 0 {
				return nil, fmt.Errorf("%d workers, aggregation %s: no two steps were seen", workers, aggregation)
			}
			ideal := scalingPace.Seconds() * float64((scalingVirtualWorkers+workers-1)/workers)
			var samples []float64
			for _, step := range r.steps {
				samples = append(samples, (step-ideal)/ideal/scalingGoal)
			}
			detail := fmt.Sprintf("10 %% of a step of %.0f ms beyond its gradients; median step %.0f ms", 1000*ideal, 1000*medianOf(r.steps))
			if aggregation == "allreduce" {
				detail += fmt.Sprintf("; a worker sends others %.0f bytes of values a step, and %.0f around them", r.payload, r.framing)
			}
			figures = append(figures, ratios(fmt.Sprintf("step beyond its gradients, %d workers, %s", workers, aggregation), "≤ 1", detail, samples))
		}
	}
	return figures, nil
}

// scaled is what a run has shown.
type scaled struct {
	steps            []float64 // seconds between one step's end and the next one's
	payload, framing float64   // bytes that a worker sent to others, on average, for each step
}

var sentLine = regexp.MustCompile(`payload_bytes=(\d+) framing_bytes=(\d+)`)

// scale runs one job. Its first steps, in which workers still join, are left out.
func scale(ctx context.Context, o options, workers int, aggregation string) (scaled, error) {
	dir, err := os.MkdirTemp("", "bench-scaling-")
	if err != nil {
		return scaled{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	const minibatch, joining = 64, 3
	epochs := 2 + (3+workers)/joining
	count := epochs * joining
	c := exec.CommandContext(ctx, o.trainer(), append(epochsOf(epochs, joining*minibatch*scalingVirtualWorkers), "--model-file", o.model(),
		"--output", dir, "--num-worker", strconv.Itoa(workers), "--min-worker", strconv.Itoa(workers), "--minibatch-size", strconv.Itoa(minibatch), "--record-per-task", strconv.Itoa(minibatch),
		"--grads-to-wait", strconv.Itoa(scalingVirtualWorkers), "--threads", "1", "--pace", scalingPace.String(), "--aggregation", aggregation, "--log-level", "debug")...)
	c.Stdout = io.Discard
	out, err := c.StderrPipe()
	if err != nil {
		return scaled{}, err
	}
	if err := c.Start(); err != nil {
		return scaled{}, err
	}
	var r scaled
	var before time.Time
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if m := sentLine.FindStringSubmatch(lines.Text()); m != nil {
			payload, _ := strconv.ParseFloat(m[1], 64)
			framing, _ := strconv.ParseFloat(m[2], 64)
			r.payload, r.framing = r.payload+payload/float64(workers*count), r.framing+framing/float64(workers*count)
		}
		m := publishedLine.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, m[1])
		if err != nil {
			return scaled{}, err
		}
		if step, _ := strconv.Atoi(m[2]); step > joining {
			r.steps = append(r.steps, at.Sub(before).Seconds())
		}
		before = at
	}
	return r, c.Wait()
}
