package local_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/torchtest"
	"github.com/elastic-training/terraform-provider-elastic/python"
)

// collectiveRun is what a loop of the tests has written: the loss of each step that counted, and the final state.
type collectiveRun struct {
	losses map[int64]float64
	most   int // ranks in a step
	state  map[string][]float64
}

// TestALoopWithItsOwnCollectivesEqualsAPlainLoopWhateverHappensToItsWorkers trains with BatchNorm, Dropout, AdamW, a
// scheduler, clipping, bfloat16, tied weights, frozen parameters, integer buffers and augmentation. The plain loop knows
// nothing of ranks.
func TestALoopWithItsOwnCollectivesEqualsAPlainLoopWhateverHappensToItsWorkers(t *testing.T) {
	torchtest.Find(t)
	type testCase struct {
		least, workers, epochs int
		processes              int           // of a worker; 0 is 1
		pace                   time.Duration // of a minibatch
		signals                []syscall.Signal
		apart                  time.Duration
	}
	// Few steps: after hundreds, bfloat16 makes errors of 1e-7 differences of 1e-4.
	cases := map[string]testCase{
		"one rank":    {least: 1, workers: 1, epochs: 10},
		"two ranks":   {least: 2, workers: 2, epochs: 10},
		"three ranks": {least: 3, workers: 3, epochs: 10},
		"four ranks":  {least: 4, workers: 4, epochs: 10},
		"ranks that receive SIGKILL, SIGTERM and SIGSTOP": {
			least: 1, workers: 3, epochs: 20, pace: 150 * time.Millisecond, apart: 1500 * time.Millisecond, signals: []syscall.Signal{
				syscall.SIGKILL, syscall.SIGTERM, syscall.SIGSTOP, syscall.SIGKILL,
				syscall.SIGTERM, syscall.SIGKILL, syscall.SIGKILL, syscall.SIGTERM,
			},
		},
		"one worker of two processes":  {least: 1, workers: 1, processes: 2, epochs: 10},
		"two workers of two processes": {least: 2, workers: 2, processes: 2, epochs: 10},
		"workers of two processes that receive SIGTERM, and of which one process receives SIGKILL": {
			least: 1, workers: 2, processes: 2, epochs: 20, pace: 150 * time.Millisecond, apart: 2 * time.Second,
			signals: []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGKILL, syscall.SIGKILL},
		},
	}
	if os.Getenv("ELASTIC_SOAK") != "" {
		all := []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGSTOP}
		signals := make([]syscall.Signal, 30)
		for i := range signals {
			signals[i] = all[rand.IntN(len(all))]
		}
		cases["ranks that receive thirty signals"] = testCase{
			least: 1, workers: 4, epochs: 60, pace: 300 * time.Millisecond, apart: 1500 * time.Millisecond, signals: signals,
		}
	}
	plain := map[int]collectiveRun{} // by epochs, on which alone it depends
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			spec := trainingjob.Job{
				Name: "collective", Namespace: "default", Model: trainingjob.Model{File: "../framework/testdata/collective.py"},
				Command: []string{torchtest.Python()}, Elastic: trainingjob.ElasticCollectives, Output: t.TempDir(),
				Data:       trainingjob.Data{Training: "indices://numbers?records=96", RecordsPerTask: 32},
				Training:   trainingjob.Training{Epochs: c.epochs, MinibatchSize: 8, GradsToWait: 4, Seed: 7},
				Checkpoint: &trainingjob.Checkpoint{Steps: 5}, ProcessesPerWorker: c.processes,
			}
			t.Setenv("COLLECTIVE_PACE", strconv.FormatFloat(c.pace.Seconds(), 'g', -1, 64))
			log, result := filepath.Join(t.TempDir(), "log"), filepath.Join(t.TempDir(), "result")
			t.Setenv("COLLECTIVE_LOG", log)
			t.Setenv("COLLECTIVE_RESULT", result)
			j, text := load(t, spec, options(1, ""))
			sent := 0
			limit := time.Duration(1+len(c.signals)/10) * patience.Long
			silence := time.Duration(0)
			if slices.Contains(c.signals, syscall.SIGSTOP) {
				silence = time.Second // some who are paused are lost, and some are not
			}
			disturbWorkers := func(ctx context.Context, output string) {
				for sent < len(c.signals) {
					select {
					case <-ctx.Done():
						return
					case <-time.After(c.apart/2 + rand.N(c.apart)):
					}
					pids := membersOf(log, output)
					if len(pids) < 2 {
						continue
					}
					switch scripts := scriptsOf(pids); {
					case c.signals[sent] == syscall.SIGSTOP:
						pids = append(pids, scripts...)
					case c.signals[sent] == syscall.SIGKILL && c.processes > 1:
						pids = scripts
					}
					if len(pids) > 0 && disturb(pids[rand.IntN(len(pids))], c.signals[sent]) {
						sent++
					}
				}
			}
			p := processes{least: c.least, most: c.workers, threads: 1, meanwhile: disturbWorkers, limit: limit, silence: silence}
			ended := p.train(t.Context(), t, j, text, spec.Output)
			if ended.Code != coordinator.ExitDone {
				t.Fatalf("the job ended with %d: %s", ended.Code, ended.Reason)
			}
			if sent < len(c.signals)/2 {
				t.Errorf("only %d of %d signals were sent before the job was done", sent, len(c.signals))
			}
			got := readCollectiveRun(t, log, result)
			if plain[c.epochs].losses == nil {
				plain[c.epochs] = plainLoop(t, func(step int64) (minibatches [][]int64) {
					for _, m := range j.Schedule.Step(step).Minibatches {
						minibatches = append(minibatches, m.Records)
					}
					return minibatches
				}, j.Schedule.Steps())
			}
			compareCollectiveRuns(t, got, plain[c.epochs], j.Schedule.Steps())
			if ranks := max(1, c.processes); got.most < min(2, c.workers)*ranks || got.most > c.workers*ranks {
				t.Errorf("the most ranks of a step were %d", got.most)
			}
			for i, n := range got.state["tally"] {
				if want := -float64(c.epochs) / 32; n != want {
					t.Errorf("record %d counts %v times instead of %d", i, -n*32, c.epochs)
				}
			}
			t.Logf("%d steps, up to %d ranks, %d signals", len(got.losses), got.most, sent)
		})
	}
}

// disturb sends a process a signal, and reports whether there was one. A stopped process continues within 12 seconds, before
// or after its worker is given up.
func disturb(pid int, signal syscall.Signal) bool {
	if syscall.Kill(pid, signal) != nil {
		return false
	}
	if signal == syscall.SIGSTOP {
		time.AfterFunc(rand.N(12*time.Second), func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	}
	return true
}

// membersOf lists the workers once there is a step that counts: a worker that is killed while it imports torch says
// nothing of collectives.
func membersOf(log, output string) []int {
	if _, err := os.Stat(log); err != nil {
		return nil
	}
	return workersOf(output)
}

// scriptsOf lists the processes of workers' scripts.
func scriptsOf(workers []int) (pids []int) {
	for _, worker := range workers {
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", worker))
		for _, task := range tasks {
			text, _ := os.ReadFile(task) // it may have ended
			for _, field := range strings.Fields(string(text)) {
				if pid, err := strconv.Atoi(field); err == nil {
					pids = append(pids, pid)
				}
			}
		}
	}
	return pids
}

func plainLoop(t *testing.T, minibatches func(step int64) [][]int64, steps int64) collectiveRun {
	t.Helper()
	dir := t.TempDir()
	if err := python.Install(dir); err != nil {
		t.Fatal(err)
	}
	var schedule [][][]int64
	for step := range steps {
		schedule = append(schedule, minibatches(step))
	}
	text, err := json.Marshal(schedule)
	if err != nil {
		t.Fatal(err)
	}
	file, log, result := filepath.Join(dir, "schedule"), filepath.Join(dir, "log"), filepath.Join(dir, "result")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), torchtest.Python(), "../framework/testdata/plain.py")
	cmd.Env = append(os.Environ(), "PYTHONPATH="+dir, "PLAIN_SCHEDULE="+file, "COLLECTIVE_LOG="+log, "COLLECTIVE_RESULT="+result)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return readCollectiveRun(t, log, result)
}

// readCollectiveRun reads what all ranks have logged. A step that was logged twice has the same loss both times.
func readCollectiveRun(t *testing.T, log, result string) collectiveRun {
	t.Helper()
	run := collectiveRun{losses: map[int64]float64{}}
	f, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var line struct {
			Step        int64
			Loss        float64
			Rank, Ranks int
		}
		if err := json.NewDecoder(strings.NewReader(lines.Text())).Decode(&line); err != nil {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		if before, twice := run.losses[line.Step]; twice && !closeTo(before, line.Loss, 1e-5) {
			t.Errorf("step %d has the loss %v on one rank and %v on another", line.Step, before, line.Loss)
		}
		run.losses[line.Step] = line.Loss
		run.most = max(run.most, line.Ranks)
	}
	text, err := os.ReadFile(result)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &run.state); err != nil {
		t.Fatal(err)
	}
	return run
}

func closeTo(a, b, relative float64) bool {
	return math.Abs(a-b) <= relative*max(math.Abs(a), math.Abs(b))
}

func compareCollectiveRuns(t *testing.T, got, want collectiveRun, steps int64) {
	t.Helper()
	worst := 0.0
	for step := range steps {
		loss, logged := got.losses[step]
		if !logged {
			t.Errorf("no rank has logged step %d", step)
			continue
		}
		worst = max(worst, math.Abs(loss-want.losses[step])/want.losses[step])
		if !closeTo(loss, want.losses[step], 1e-5) {
			t.Errorf("step %d: the loss is %v, and %v in a plain loop", step, loss, want.losses[step])
		}
	}
	for name, values := range want.state {
		if len(got.state[name]) != len(values) {
			t.Errorf("%s has %d elements instead of %d", name, len(got.state[name]), len(values))
			continue
		}
		for i, v := range values {
			if d := math.Abs(got.state[name][i] - v); d > 1e-4*max(1, math.Abs(v)) {
				t.Errorf("%s[%d] is %v, and %v after a plain loop", name, i, got.state[name][i], v)
				break
			}
		}
	}
	t.Logf("the greatest relative difference of a loss is %.2g", worst)
}
