package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

//go:embed collectives_torch.py
var collectivesProgram []byte

const (
	killedRankGoal = time.Second // until the next step of the other rank
	minibatchOfTwo = 64          // of each of the two ranks
)

// elasticModes are compared: the script's own collectives, and DistributedDataParallel as under torchrun.
var elasticModes = []string{"collectives", "restart"}

// doneStep is a step as a rank of collectives_torch.py has noted it.
type doneStep struct {
	number, rank, process int
	at, commit            float64 // seconds
}

// measureCollectives compares a job with collectives of its own with DistributedDataParallel, both with two ranks and gloo,
// in turn: the time of a step, and the time until the next step after a rank was killed.
func measureCollectives(ctx context.Context, o options) ([]figure, error) {
	figures, err := compareWithDDP(ctx, o, "small", "the tutorial's network", "≥ 0.97", 60)
	if err != nil {
		return nil, err
	}
	f, err := measureKilledRank(ctx, o)
	return append(figures, f...), err
}

// measureLargeCollectives compares the time of a step of a network whose gradients are 400 MB.
func measureLargeCollectives(ctx context.Context, o options) ([]figure, error) {
	return compareWithDDP(ctx, o, "large", "100 M parameters", "≥ 0.98", 12)
}

// compareWithDDP compares the medians of the steps' times.
func compareWithDDP(ctx context.Context, o options, network, title, goal string, steps int) ([]figure, error) {
	if exec.CommandContext(ctx, python, "-c", "import torch").Run() != nil {
		return nil, errSkipped{fmt.Sprintf("no PyTorch for %s (Debian: python3-torch)", python)}
	}
	var ratio, commits []float64
	times := map[string][]float64{}
	for round := range o.rounds {
		of := map[string]float64{}
		for i := range elasticModes {
			mode := elasticModes[(round+i)%len(elasticModes)] // what the machine does besides hits both
			done, err := trainTwoRanks(ctx, o, mode, network, steps, nil)
			if err != nil {
				return nil, err
			}
			of[mode] = medianGap(done)
			times[mode] = append(times[mode], of[mode])
			if mode == "collectives" {
				commits = append(commits, medianCommit(done)/of[mode])
			}
		}
		ratio = append(ratio, of["restart"]/of["collectives"])
	}
	detail := fmt.Sprintf("the speed of DistributedDataParallel with gloo, two ranks: a step lasts %.1f and %.1f ms",
		1000*medianOf(times["collectives"]), 1000*medianOf(times["restart"]))
	return []figure{
		ratios("collectives ÷ DDP, "+title, goal, detail, ratio),
		ratios("commit of a step, "+title, "", "the time of a step", commits),
	}, nil
}

// measureKilledRank kills one of two ranks and times the next step.
func measureKilledRank(ctx context.Context, o options) ([]figure, error) {
	var figures []figure
	for _, mode := range elasticModes {
		var seconds, lost []float64
		for range o.rounds {
			killed := 0.0
			done, err := trainTwoRanks(ctx, o, mode, "small", 140, func(log string) error {
				victim, err := rankAfter(ctx, log, 75)
				if err != nil {
					return err
				}
				killed = float64(time.Now().UnixNano()) / 1e9
				return syscall.Kill(victim, syscall.SIGKILL)
			})
			if err != nil {
				return nil, err
			}
			next, again := afterKill(done, killed)
			seconds, lost = append(seconds, next/killedRankGoal.Seconds()), append(lost, float64(again))
		}
		goal, detail := "≤ 1", fmt.Sprintf("the goal, 1 s; steps computed again: %.0f", medianOf(lost))
		if mode == "restart" {
			goal, detail = "", detail+" (a checkpoint every 50)"
		}
		figures = append(figures, ratios("a rank is killed, until the next step, "+mode, goal, detail, seconds))
	}
	return figures, nil
}

// trainTwoRanks trains to the end with two workers, and calls meanwhile with the log while it does.
func trainTwoRanks(ctx context.Context, o options, mode, network string, steps int, meanwhile func(log string) error) (_ []doneStep, err error) {
	dir, err := os.MkdirTemp("", "bench-collectives-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	script, log, records := filepath.Join(dir, "train.py"), filepath.Join(dir, "log"), steps*2*minibatchOfTwo
	if err := os.WriteFile(script, collectivesProgram, 0o600); err != nil {
		return nil, err
	}
	args := []string{"train", "--elastic", mode, "--num-worker", "2", "--output", filepath.Join(dir, "out")}
	if mode == "restart" {
		args = append(args, "--worker-command", python+" "+script)
	} else {
		args = append(args, "--worker-command", python, "--model-file", script, "--train-data-dir", fmt.Sprintf("indices://bench?records=%d", records),
			"--grads-to-wait", "2", "--minibatch-size", strconv.Itoa(minibatchOfTwo),
			"--num-epoch", "1", "--record-per-task", strconv.Itoa(records), "--checkpoint-steps", strconv.Itoa(steps))
	}
	c := exec.CommandContext(ctx, o.trainer(), args...)
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.Env = append(os.Environ(), "BENCH_NETWORK="+network, "BENCH_LOG="+log, "BENCH_CHECKPOINT="+filepath.Join(dir, "checkpoint"),
		fmt.Sprintf("BENCH_RECORDS=%d", records), "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1", blasKernels())
	var output bytes.Buffer
	c.Stdout, c.Stderr = &output, &output
	if err := c.Start(); err != nil {
		return nil, err
	}
	var failed error
	if meanwhile != nil {
		if failed = meanwhile(log); failed != nil {
			_ = c.Process.Signal(syscall.SIGTERM) // it may have ended
		}
	}
	if err := errors.Join(failed, c.Wait()); err != nil {
		return nil, fmt.Errorf("train with %s: %w: %s", mode, err, output.String())
	}
	return readSteps(log)
}

// readSteps reads what the ranks have noted, in order of time.
func readSteps(log string) ([]doneStep, error) {
	text, err := os.ReadFile(log)
	if err != nil {
		return nil, err
	}
	var done []doneStep
	for line := range strings.Lines(string(text)) {
		s := doneStep{}
		if _, err := fmt.Sscan(line, &s.number, &s.rank, &s.process, &s.at, &s.commit); err != nil {
			return nil, fmt.Errorf("a line of the steps, %q: %w", line, err)
		}
		done = append(done, s)
	}
	slices.SortStableFunc(done, func(a, b doneStep) int { return int((a.at - b.at) * 1e6) })
	return done, nil
}

// rankAfter waits until so many steps are done, and returns the process of the newest step's rank 1.
func rankAfter(ctx context.Context, log string, steps int) (int, error) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(2 * time.Minute); ; {
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-late:
			return 0, errors.New("there was no step for two minutes")
		case <-tick.C:
		}
		done, err := readSteps(log)
		if err != nil {
			continue // not there, or a line is being written
		}
		for _, s := range done {
			if s.rank == 1 && s.number >= steps {
				return s.process, nil
			}
		}
	}
}

// medianGap is the time of a step by rank 0, without the first ones and those in which a group of two was not there yet.
func medianGap(done []doneStep) float64 {
	ranks, gaps, before := map[int]int{}, []float64(nil), 0.0
	for _, s := range done {
		ranks[s.number]++
	}
	for _, s := range done {
		if s.rank != 0 {
			continue
		}
		if before > 0 && s.number >= 3 && ranks[s.number] == 2 && ranks[s.number-1] == 2 {
			gaps = append(gaps, s.at-before)
		}
		before = s.at
	}
	return medianOf(gaps)
}

func medianCommit(done []doneStep) float64 {
	var commits []float64
	for _, s := range done {
		if s.rank == 0 && s.number >= 3 {
			commits = append(commits, s.commit)
		}
	}
	return medianOf(commits)
}

// afterKill is the time until the first step after the kill that was not done before, and how many were done again.
func afterKill(done []doneStep, killed float64) (seconds float64, again int) {
	newest, repeated := -1, map[int]bool{}
	for _, s := range done {
		if s.at <= killed {
			newest = max(newest, s.number)
			continue
		}
		if s.number <= newest {
			repeated[s.number] = true
		} else if seconds == 0 {
			seconds = s.at - killed
		}
	}
	return seconds, len(repeated)
}
