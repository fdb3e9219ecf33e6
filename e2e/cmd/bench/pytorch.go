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

//go:embed pytorch_torch.py
var pytorchProgram []byte

//go:embed pytorch_torchrun.py
var torchrunProgram []byte

const (
	killedRankGoal = time.Second      // until the next step of the other rank
	commitGoal     = time.Millisecond // where no worker comes or goes
	minibatchOfTwo = 64               // of each of the two ranks
)

// How two ranks train: with the script's own collectives, or with DistributedDataParallel, started again by this project or
// by torchrun.
const (
	collectives = "collectives"
	restart     = "restart"
	torchrun    = "torchrun"
)

// pytorchNetworks are those of pytorch_torch.py.
var pytorchNetworks = []struct {
	name, title, goal string
	steps             int
}{
	{"small", "784–512–512–10", "≥ 0.97", 300},
	{"20M", "20 M parameters", "", 40},
	{"100M", "100 M parameters", "≥ 0.98", 12},
}

// doneStep is a step as a rank of pytorch_torch.py has noted it.
type doneStep struct {
	number, rank, process int
	at, commit            float64 // seconds
}

// ranks are two, of one PyTorch, with one thread each.
type ranks struct {
	options
	python   string
	version  string
	torchrun bool // it can be started
}

// measurePyTorch compares a job with collectives of its own with DistributedDataParallel, both with two ranks and gloo, in
// turn, with each PyTorch of $PYTORCH: the time of a step, and the time until the next step after a rank was killed.
func measurePyTorch(ctx context.Context, o options) ([]figure, error) {
	list := exec.CommandContext(ctx, filepath.Join(o.root, "tools", "test-pytorch.sh"), "--list")
	list.Stderr = o.log
	found, err := list.Output()
	if err != nil {
		return nil, errSkipped{"no PyTorch was found: " + err.Error()}
	}
	var figures []figure
	for _, python := range strings.Fields(string(found)) {
		version, err := exec.CommandContext(ctx, python, "-c", "import torch; print(torch.__version__)").Output()
		if err != nil {
			return nil, fmt.Errorf("the version of PyTorch of %s: %w", python, err)
		}
		r := ranks{options: o, python: python, version: strings.TrimSpace(string(version))}
		// That of PyTorch 1.13 does not start with Python 3.11.
		r.torchrun = exec.CommandContext(ctx, python, "-m", "torch.distributed.run", "--help").Run() == nil
		for _, measure := range []func(context.Context) ([]figure, error){r.measureSteps, r.measureKills} {
			f, err := measure(ctx)
			if err != nil {
				return nil, err
			}
			figures = append(figures, f...)
		}
	}
	return figures, nil
}

// ddp is how DistributedDataParallel is started where nothing is lost.
func (r ranks) ddp() string {
	if r.torchrun {
		return torchrun
	}
	return restart
}

func (r ranks) title(what string) string { return what + ", PyTorch " + r.version }

// measureSteps compares the medians of the steps' times.
func (r ranks) measureSteps(ctx context.Context) ([]figure, error) {
	var figures []figure
	for _, network := range pytorchNetworks {
		var ratio, commits []float64
		times := map[string][]float64{}
		modes := []string{collectives, r.ddp()}
		for round := range r.rounds {
			of := map[string]float64{}
			for i := range modes {
				mode := modes[(round+i)%len(modes)] // what the machine does besides hits both
				done, err := r.train(ctx, mode, network.name, network.steps, nil)
				if err != nil {
					return nil, err
				}
				of[mode] = medianGap(done)
				times[mode] = append(times[mode], of[mode])
				if mode == collectives {
					commits = append(commits, medianCommit(done)/commitGoal.Seconds())
				}
			}
			ratio = append(ratio, of[r.ddp()]/of[collectives])
		}
		detail := fmt.Sprintf("the speed of DistributedDataParallel with gloo, two ranks: a step lasts %.1f and %.1f ms",
			1000*medianOf(times[collectives]), 1000*medianOf(times[r.ddp()]))
		figures = append(figures,
			ratios(r.title("collectives ÷ DDP, "+network.title), network.goal, detail, ratio),
			ratios(r.title("commit of a step, "+network.title), "≤ 1", commitGoal.String(), commits))
	}
	return figures, nil
}

// measureKills kills one of two ranks and times the next step, and what it costs the other rank when the next worker joins.
func (r ranks) measureKills(ctx context.Context) ([]figure, error) {
	var figures []figure
	modes := []string{collectives, restart}
	if r.torchrun {
		modes = append(modes, torchrun)
	}
	for _, mode := range modes {
		var seconds, lost, joins []float64
		for range r.rounds {
			killed := 0.0
			done, err := r.train(ctx, mode, "small", 300, func(log string) error {
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
			fmt.Fprintf(r.log, "  … until the next step: %.2f s, steps again: %d\n", next, again)
			seconds, lost = append(seconds, next/killedRankGoal.Seconds()), append(lost, float64(again))
			if cost, joined := costOfJoin(done); joined {
				joins = append(joins, cost/killedRankGoal.Seconds())
			}
		}
		goal, detail := "≤ 1", fmt.Sprintf("1 s; steps computed again: %.0f", medianOf(lost))
		if mode != collectives {
			goal, detail = "", detail+" (a checkpoint every 50)"
		}
		figures = append(figures, ratios(r.title("a rank is killed, until the next step, "+mode), goal, detail, seconds))
		if len(joins) > 0 {
			figures = append(figures, ratios(r.title("a worker joins, its longest step without a step's time, "+mode), "", "1 s", joins))
		}
	}
	return figures, nil
}

// train trains to the end with two ranks, and calls meanwhile with the log while it does.
func (r ranks) train(ctx context.Context, mode, network string, steps int, meanwhile func(log string) error) (_ []doneStep, err error) {
	dir, err := os.MkdirTemp("", "bench-pytorch-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	script, log, records := filepath.Join(dir, "train.py"), filepath.Join(dir, "log"), steps*2*minibatchOfTwo
	if err := os.WriteFile(script, pytorchProgram, 0o600); err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, r.trainer(), "train", "--elastic", mode, "--num-worker", "2", "--output", filepath.Join(dir, "out"))
	switch mode {
	case collectives:
		c.Args = append(c.Args, "--worker-command", r.python, "--model-file", script,
			"--train-data-dir", fmt.Sprintf("indices://bench?records=%d", records), "--grads-to-wait", "2",
			"--minibatch-size", strconv.Itoa(minibatchOfTwo), "--num-epoch", "1", "--record-per-task", strconv.Itoa(records),
			"--checkpoint-steps", strconv.Itoa(steps))
	case restart:
		c.Args = append(c.Args, "--worker-command", r.python+" "+script)
	case torchrun:
		launcher := filepath.Join(dir, "torchrun.py")
		if err := os.WriteFile(launcher, torchrunProgram, 0o600); err != nil {
			return nil, err
		}
		c = exec.CommandContext(ctx, r.python, launcher, "--standalone", "--nproc_per_node", "2", "--max_restarts", "3", script)
	}
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.Env = append(os.Environ(), "BENCH_NETWORK="+network, "BENCH_LOG="+log, "BENCH_CHECKPOINT="+filepath.Join(dir, "checkpoint"),
		fmt.Sprintf("BENCH_RECORDS=%d", records), "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1", blasKernels(),
		"USE_LIBUV=0", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1") // of torchrun; see pytorch_torchrun.py
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
		return nil, fmt.Errorf("train with %s and %s: %w: %s", r.python, mode, err, output.String())
	}
	done, err := readSteps(log)
	if err == nil {
		fmt.Fprintf(r.log, "  PyTorch %s, %s, %s: %.1f ms a step\n", r.version, network, mode, 1000*medianGap(done))
	}
	return done, err
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

// costOfJoin is how much longer than the others the step of rank 0 lasts in which a second rank takes part again, and
// whether there is one.
func costOfJoin(done []doneStep) (seconds float64, joined bool) {
	ranks, at := map[int]int{}, map[int]float64{}
	for _, s := range done {
		ranks[s.number]++
		if s.rank == 0 {
			at[s.number] = s.at
		}
	}
	for number := range len(at) {
		if number > 3 && ranks[number-1] == 1 && ranks[number] == 2 {
			return at[number] - at[number-1] - medianGap(done), true
		}
	}
	return 0, false
}
