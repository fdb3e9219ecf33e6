package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	leaveGoal   = 100 * time.Millisecond // beyond one step at the new number of workers
	joinGoal    = 100 * time.Millisecond // likewise
	restartGoal = 3 * time.Second
	goodputGoal = 0.97
)

// localRun is a local training run of paced workers, of the tutorial's network.
type localRun struct {
	*exec.Cmd
	dir     string
	address string // of its master
	steps   <-chan published
	wait    func() error
}

// epochsOf is the command that trains so often on so many digits. They are few and come again, because every worker
// keeps the data of all virtual workers at hand: where all are new, eight processes on two cores are kept busy drawing
// them. The only checkpoint is the last.
func epochsOf(epochs, records int) []string {
	return []string{
		"train", "--train-data-dir", fmt.Sprintf("synthetic://digits?records=%d&seed=1", records), "--num-epoch", strconv.Itoa(epochs),
		"--checkpoint-steps", strconv.Itoa(epochs * records),
	}
}

// startRun starts one with so many workers, of which each gradient of a step takes the pace.
func startRun(ctx context.Context, o options, workers, virtualWorkers, steps int, pace time.Duration) (*localRun, error) {
	dir, err := os.MkdirTemp("", "bench-run-")
	if err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &localRun{dir: dir, address: listener.Addr().String()}
	if err := listener.Close(); err != nil {
		return nil, err
	}
	const minibatch, stepsOfAnEpoch = 10, 100
	r.Cmd = exec.CommandContext(ctx, o.trainer(), append(epochsOf((steps+stepsOfAnEpoch-1)/stepsOfAnEpoch, minibatch*virtualWorkers*stepsOfAnEpoch), "--model-file", o.model(),
		"--output", dir, "--num-worker", strconv.Itoa(workers), "--minibatch-size", strconv.Itoa(minibatch), "--grads-to-wait", strconv.Itoa(virtualWorkers),
		"--listen", r.address, "--threads", "1", "--pace", pace.String(), "--log-level", "debug")...)
	r.Cancel = func() error { return r.Process.Signal(syscall.SIGTERM) }
	if r.steps, r.wait, err = watchSteps(r.Cmd); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return r, nil
}

// stop ends it and removes what it has written.
func (r *localRun) stop() error {
	_ = r.Process.Signal(syscall.SIGTERM) // it may have ended
	for range r.steps {                   //nolint:revive // drained so that the trainer can end
	}
	if err := r.wait(); err != nil && r.ProcessState.ExitCode() != 143 {
		return errors.Join(err, os.RemoveAll(r.dir))
	}
	return os.RemoveAll(r.dir)
}

// next returns when the next step was published.
func (r *localRun) next() (published, error) {
	s, ok := <-r.steps
	if !ok {
		return s, errors.New("the trainer has ended")
	}
	return s, nil
}

// measureLeave asks one of two paced workers to leave, by SIGTERM, and times the other's next steps; then the time
// until the next one, which takes the place of the first, has a share of the work.
func measureLeave(ctx context.Context, o options) ([]figure, error) {
	const pace = 50 * time.Millisecond
	var left, joined, leftSeconds, joinedSeconds []float64
	r, err := startRun(ctx, o, 2, 2, 100*o.rounds*4, pace)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.stop() }()
	for range 4 * o.rounds {
		var at, before, gap time.Time
		for range 10 { // the replacement has joined by then
			s, err := r.next()
			if err != nil {
				return nil, err
			}
			before = s.at
		}
		pid := aWorker(r.Process.Pid)
		if pid == 0 {
			return nil, errors.New("there is no worker")
		}
		at = time.Now()
		if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
			return nil, err
		}
		longest := time.Duration(0)
		var second time.Time // when the second step after the signal was there
		for n, alone := 1, false; ; n++ {
			s, err := r.next()
			if err != nil {
				return nil, err
			}
			took := s.at.Sub(before)
			before = s.at
			longest = max(longest, took)
			if alone = alone || took > pace*3/2; alone && took < pace*3/2 {
				gap = s.at
				break // two of them again
			}
			if n == 2 {
				second = s.at
			}
			if n == 20 && !alone && syscall.Kill(pid, 0) != nil {
				gap = second // the next one was there before a step had to do without it
				break
			}
			if s.at.Sub(at) > 5*time.Second {
				return nil, errors.New("a worker that was asked to leave computes on, or none has come in its place")
			}
		}
		beyond := longest - 2*pace
		left, leftSeconds = append(left, beyond.Seconds()/leaveGoal.Seconds()), append(leftSeconds, longest.Seconds())
		took := gap.Sub(at)
		joined, joinedSeconds = append(joined, (took-2*pace).Seconds()/joinGoal.Seconds()), append(joinedSeconds, took.Seconds())
	}
	return []figure{
		ratios("a worker leaves (SIGTERM): longest gap between steps, beyond a step of those left", "≤ 1", fmt.Sprintf("%v; median gap %.0f ms, where a step of two is %v and of one %v", leaveGoal, 1000*medianOf(leftSeconds), pace, 2*pace), left),
		ratios("a worker leaves to a step that the next one had its share of, beyond two gradients", "≤ 2", fmt.Sprintf("%v; median %.0f ms: the leaving one's minibatch, a process's start, and the first gradient", joinGoal, 1000*medianOf(joinedSeconds)), joined),
	}, nil
}

// measureStraggler sets the step time of seven paced workers and one ten times slower beside that of the seven alone.
func measureStraggler(ctx context.Context, o options) ([]figure, error) {
	const (
		pace  = 50 * time.Millisecond
		steps = 150
	)
	stepTime := func(slow bool) (_ float64, err error) {
		r, err := startRun(ctx, o, 7, 8, 10*steps, pace)
		if err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, r.stop()) }()
		if slow {
			straggler, err := r.join(ctx, o, 99, 10*pace)
			if err != nil {
				return 0, err
			}
			defer func() { _ = straggler() }()
		}
		var first, last published
		for i := range steps {
			if last, err = r.next(); err != nil {
				return 0, err
			}
			if i == 20 { // by then it has been late
				first = last
			}
		}
		return last.at.Sub(first.at).Seconds() / float64(last.step-first.step), nil
	}
	var samples, with, without []float64
	for range o.rounds {
		a, err := stepTime(false)
		if err != nil {
			return nil, err
		}
		b, err := stepTime(true)
		if err != nil {
			return nil, err
		}
		samples, without, with = append(samples, b/a), append(without, a), append(with, b)
	}
	return []figure{ratios("step time with a worker ten times slower, to that without it", "≤ 1.1", fmt.Sprintf(
		"seven workers with gradients of %v and one of %v, 8 virtual workers: median %.0f ms with it, %.0f ms without", pace, 10*pace, 1000*medianOf(with), 1000*medianOf(without)), samples)}, nil
}

// join starts a worker of another pace beside the run's own, once the run has its first step. It returns how to end it.
func (r *localRun) join(ctx context.Context, o options, id int, pace time.Duration) (func() error, error) {
	if _, err := r.next(); err != nil {
		return nil, err
	}
	found, err := filepath.Glob(filepath.Join(r.dir, "*", ".credentials"))
	if err != nil || len(found) != 1 {
		return nil, fmt.Errorf("the run's credentials: %v %w", found, err)
	}
	c := exec.CommandContext(ctx, o.trainer(), "worker", "--master", r.address, "--id", strconv.Itoa(id), "--credentials", found[0], "--threads", "1", "--pace", pace.String(), "--master-timeout", "1s")
	c.Stdout, c.Stderr = io.Discard, io.Discard
	if err := c.Start(); err != nil {
		return nil, err
	}
	return func() error {
		return errors.Join(c.Process.Signal(syscall.SIGTERM), c.Wait())
	}, nil
}

// measureGoodput trains with eight paced workers and preempts one of them again and again, by SIGTERM and by SIGKILL in
// turn. Its steps are set beside those of as much time undisturbed: the median step's, in the same run.
func measureGoodput(ctx context.Context, o options) ([]figure, error) {
	const (
		workers = 8
		pace    = 50 * time.Millisecond
	)
	r, err := startRun(ctx, o, workers, workers, int(o.goodput/pace)+1000, pace)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.stop() }()
	var first, last published
	for range 20 { // all have joined
		if first, err = r.next(); err != nil {
			return nil, err
		}
	}
	last = first
	next, preemptions := first.at.Add(o.preemption), 0
	var gaps []float64
	for last.at.Sub(first.at) < o.goodput {
		s, err := r.next()
		if err != nil {
			return nil, err
		}
		gaps = append(gaps, s.at.Sub(last.at).Seconds())
		if last = s; s.at.After(next) {
			signal := []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL}[preemptions%2]
			if pid := aWorker(r.Process.Pid); pid > 0 && syscall.Kill(pid, signal) == nil {
				preemptions++
			}
			next = next.Add(o.preemption)
		}
	}
	elapsed, undisturbed := last.at.Sub(first.at).Seconds(), medianOf(gaps)
	goodput := float64(last.step-first.step) * undisturbed / elapsed
	return []figure{ratios("goodput under preemptions", fmt.Sprintf("≥ %.2f", goodputGoal), fmt.Sprintf(
		"%d steps in %.0f s with %d workers at %v and %d preemptions, each replaced at once; the median step took %.1f ms", last.step-first.step, elapsed, workers, pace, preemptions, 1000*undisturbed), []float64{goodput})}, nil
}

// backLine is what the test of a killed master says.
var backLine = regexp.MustCompile(`the next step, \d+, came (\S+) after the kill of process`)

// measureRestart kills the process of a master on the embedded cluster, its workers alive, and times the next step:
// what the test of that says.
func measureRestart(ctx context.Context, o options) ([]figure, error) {
	c := exec.CommandContext(ctx, "go", "test", "-v", "-count", strconv.Itoa(o.rounds), "-run", "^TestAMasterProcessThatIsKilled", "./training")
	c.Dir = filepath.Join(o.root, "e2e")
	c.Env = append(os.Environ(), "SIMCLUSTER_BIN="+filepath.Join(o.root, "bin", "simcluster"), "ELASTIC_TRAINER_BIN="+o.trainer())
	output, err := c.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(c.Args, " "), err, output)
	}
	var samples, seconds []float64
	for _, m := range backLine.FindAllSubmatch(output, -1) {
		took, err := time.ParseDuration(string(m[1]))
		if err != nil {
			return nil, err
		}
		samples, seconds = append(samples, took.Seconds()/restartGoal.Seconds()), append(seconds, took.Seconds())
	}
	if len(samples) == 0 {
		return nil, fmt.Errorf("%s says no time:\n%s", strings.Join(c.Args, " "), output)
	}
	return []figure{ratios("kill of the master's process to the next step, workers alive", "≤ 1", fmt.Sprintf("%v; median %.0f ms, in a pod of the embedded cluster, gradients of 100 ms", restartGoal, 1000*medianOf(seconds)), samples)}, nil
}
