package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/simcluster"
)

const (
	startGoal   = 100 * time.Millisecond
	killGoal    = 500 * time.Millisecond
	clusterGoal = 10 * time.Second
)

// measureStart times `elastic-trainer train` on a job of one step: supervisor, master and one worker process begin,
// train, save and end. Process start to first step is less than that.
func measureStart(ctx context.Context, o options) ([]figure, error) {
	var samples, seconds []float64
	for range 4 * o.rounds {
		dir, err := os.MkdirTemp("", "bench-start-")
		if err != nil {
			return nil, err
		}
		began := time.Now()
		c := exec.CommandContext(ctx, o.trainer(), "train", "--model-file", o.model(), "--train-data-dir", "synthetic://digits?records=20&seed=1",
			"--output", dir, "--num-worker", "1", "--grads-to-wait", "2", "--log-level", "debug")
		published, err := firstStep(c)
		_ = os.RemoveAll(dir)
		if err != nil {
			return nil, err
		}
		took := published.Sub(began)
		samples = append(samples, took.Seconds()/startGoal.Seconds())
		seconds = append(seconds, took.Seconds())
	}
	return []figure{ratios("process start to first step", "≤ 1", fmt.Sprintf("%v; median %.0f ms, supervisor, master and worker processes", startGoal, 1000*medianOf(seconds)), samples)}, nil
}

// firstStep runs a trainer and returns when its first step was published.
func firstStep(c *exec.Cmd) (time.Time, error) {
	steps, wait, err := watchSteps(c)
	if err != nil {
		return time.Time{}, err
	}
	first, ok := <-steps
	for range steps { //nolint:revive // drained so that the trainer can end
	}
	if err := wait(); err != nil {
		return time.Time{}, err
	}
	if !ok {
		return time.Time{}, fmt.Errorf("%s published no step", c)
	}
	return first.at, nil
}

// published is a line of the master's debug log.
type published struct {
	step int64
	at   time.Time
}

var publishedLine = regexp.MustCompile(`^time=(\S+) level=DEBUG msg=published step=(\d+)`)

// watchSteps starts a trainer with debug logging and delivers its steps with the master's own times.
func watchSteps(c *exec.Cmd) (<-chan published, func() error, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	c.Stderr = w
	c.Stdout = io.Discard
	if err := c.Start(); err != nil {
		return nil, nil, err
	}
	_ = w.Close()
	steps := make(chan published, 4096)
	go func() {
		defer close(steps)
		defer func() { _ = r.Close() }()
		for lines := bufio.NewScanner(r); lines.Scan(); {
			if m := publishedLine.FindStringSubmatch(lines.Text()); m != nil {
				at, err := time.Parse(time.RFC3339Nano, m[1])
				step, _ := strconv.ParseInt(m[2], 10, 64)
				if err == nil {
					steps <- published{step, at}
				}
			}
		}
	}()
	return steps, c.Wait, nil
}

// measureKill kills one of two paced workers by SIGKILL and times the survivor's next step.
func measureKill(ctx context.Context, o options) ([]figure, error) {
	dir, err := os.MkdirTemp("", "bench-kill-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	kills := 4 * o.rounds
	c := exec.CommandContext(ctx, o.trainer(), "train", "--model-file", o.model(), "--train-data-dir", fmt.Sprintf("synthetic://digits?records=%d&seed=1", 20*(12*kills+20)),
		"--output", dir, "--num-worker", "2", "--grads-to-wait", "2", "--pace", "20ms", "--log-level", "debug")
	steps, wait, err := watchSteps(c)
	if err != nil {
		return nil, err
	}
	var samples, seconds []float64
	var killed time.Time
	since := 0
	for s := range steps {
		if !killed.IsZero() {
			if s.at.Before(killed) {
				continue
			}
			gap := s.at.Sub(killed)
			samples = append(samples, gap.Seconds()/killGoal.Seconds())
			seconds = append(seconds, gap.Seconds())
			killed, since = time.Time{}, 0
		}
		if since++; since >= 10 && len(samples) < kills { // the replacement has joined by then
			if pid := aWorker(c.Process.Pid); pid > 0 && syscall.Kill(pid, syscall.SIGKILL) == nil {
				killed = time.Now()
			}
		}
	}
	if err := wait(); err != nil {
		return nil, err
	}
	if len(samples) == 0 {
		return nil, fmt.Errorf("no worker could be killed in time")
	}
	return []figure{ratios("kill of a worker to the survivor's next step", "≤ 1", fmt.Sprintf("%v; median %.0f ms, gradients of 20 ms", killGoal, 1000*medianOf(seconds)), samples)}, nil
}

// aWorker is the newest child of a trainer.
func aWorker(trainer int) int {
	newest := 0
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", trainer))
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		if err != nil {
			continue // the thread has ended
		}
		for _, field := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(field); err == nil {
				newest = max(newest, pid)
			}
		}
	}
	return newest
}

// measureCluster times the embedded cluster from nothing to ready.
func measureCluster(ctx context.Context, o options) ([]figure, error) {
	var samples, seconds []float64
	for range o.rounds {
		began := time.Now()
		cluster, err := simcluster.Run(ctx, simcluster.Options{Binary: filepath.Join(o.root, "bin", "simcluster")})
		if err != nil {
			return nil, err
		}
		took := time.Since(began).Seconds()
		if err := cluster.Close(); err != nil {
			return nil, err
		}
		samples = append(samples, took/clusterGoal.Seconds())
		seconds = append(seconds, took)
	}
	return []figure{ratios("control plane and three nodes, nothing to ready", "≤ 1", fmt.Sprintf("%v; median %.1f s", clusterGoal, medianOf(seconds)), samples)}, nil
}
