package local_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/job"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/torchtest"
)

// TestAScriptForTorchrunContinuesFromItsCheckpointWhateverHappensToItsWorkers runs examples/pytorch/ddp.py, which knows
// nothing of workers that come and go. A worker is killed, one is signalled to leave, and a process of the script is
// killed.
func TestAScriptForTorchrunContinuesFromItsCheckpointWhateverHappensToItsWorkers(t *testing.T) {
	for name, c := range map[string]struct{ workers, processes int }{"one process on each worker": {3, 1}, "two processes on each worker": {2, 2}} {
		t.Run(name, func(t *testing.T) { disturbedCommand(t, c.workers, c.processes) })
	}
}

func disturbedCommand(t *testing.T, workers, each int) {
	t.Helper()
	python := torchtest.Find(t)
	script, err := filepath.Abs("../../../../examples/pytorch/ddp.py")
	if err != nil {
		t.Fatal(err)
	}
	const epochs, every = 6, 4
	state := t.TempDir()
	spec := trainingjob.Job{
		Name: "ddp", Namespace: "default", Output: t.TempDir(), Elastic: trainingjob.ElasticRestart, Restart: &trainingjob.Restart{IntervalSeconds: 2}, ProcessesPerWorker: each,
		Command: []string{python, script, "--directory", state, "--epochs", strconv.Itoa(epochs), "--every", strconv.Itoa(every), "--pace", "0.1"},
	}
	text, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	j, err := job.Load(t.Context(), spec, "", nil, options(1, ""))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = j.Close() }()
	seen := 0
	ended := processes{least: 1, most: workers, threads: 1, meanwhile: func(ctx context.Context, output string) {
		// Each disturbance comes a few steps after the start before it, and the next waits for the start that follows.
		for _, disturb := range []func() bool{
			func() bool { return kill(workersOf(output), syscall.SIGKILL) },
			func() bool { return kill(workersOf(output), syscall.SIGTERM) },
			func() bool { return kill(processesOf(script), syscall.SIGKILL) },
		} {
			if !poll(ctx, func() bool { return hasSavedSinceItsStart(state) && disturb() }) {
				return
			}
			seen++
			before := len(startsOf(t, state))
			poll(ctx, func() bool { return len(startsOf(t, state)) > before })
		}
	}}.train(t.Context(), t, j, text, spec.Output)
	if ended.Code != coordinator.ExitDone {
		t.Fatalf("the job ended with %d: %s", ended.Code, ended.Reason)
	}
	starts := startsOf(t, state)
	if seen < 3 || len(starts) < 4 {
		t.Errorf("%d disturbances, %d starts", seen, len(starts))
	}
	most := 0
	for _, s := range starts {
		if s.Ranks%each != 0 {
			t.Errorf("started with %d ranks", s.Ranks)
		}
	}
	for i, s := range starts {
		most = max(most, s.Ranks)
		if i > 0 && s.Epoch*960+s.Position < starts[i-1].Epoch*960+starts[i-1].Position {
			t.Errorf("start %d is at epoch %d, record %d, before that of start %d", i, s.Epoch, s.Position, i-1)
		}
	}
	if most < 2*each {
		t.Error("the script never ran on several workers")
	}
	check := exec.CommandContext(t.Context(), python, "-c", `
import sys, torch
s = torch.load(sys.argv[1])
print(s["epoch"], (s["model"]["weight"] - torch.arange(8.0)).abs().max().item() < 1)`, filepath.Join(state, "checkpoint.pt"))
	if out, err := check.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != fmt.Sprintf("%d True", epochs) {
		t.Errorf("the last checkpoint: %s, %v", out, err)
	}
	t.Logf("starts: %+v", starts)
}

// start is what ddp.py writes at each start.
type start struct{ Ranks, Epoch, Position, Restarts int }

func startsOf(t *testing.T, directory string) (starts []start) {
	t.Helper()
	text, _ := os.ReadFile(filepath.Join(directory, "starts.jsonl"))
	for line := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n") {
		var s start
		if json.Unmarshal([]byte(line), &s) == nil {
			starts = append(starts, s)
		}
	}
	return starts
}

// hasSavedSinceItsStart reports whether the newest start has written a checkpoint.
func hasSavedSinceItsStart(directory string) bool {
	saved, err := os.Stat(filepath.Join(directory, "checkpoint.pt"))
	if err != nil {
		return false
	}
	started, err := os.Stat(filepath.Join(directory, "starts.jsonl"))
	return err == nil && saved.ModTime().After(started.ModTime())
}

// poll waits until ok is true, and reports whether it became so before the context ended. Other processes report what
// they do only by their files and their messages to the master.
func poll(ctx context.Context, ok func() bool) bool {
	ticks := time.NewTicker(10 * time.Millisecond)
	defer ticks.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			return false
		case <-ticks.C:
		}
	}
	return true
}

// kill signals the first of several processes, and reports whether there were several.
func kill(pids []int, signal syscall.Signal) bool {
	return len(pids) > 1 && syscall.Kill(pids[0], signal) == nil
}

// processesOf lists the processes of a script.
func processesOf(script string) (pids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range all {
		text, _ := os.ReadFile(file) // it may have ended
		words := strings.Split(string(text), "\x00")
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil && len(words) > 1 && words[1] == script {
			pids = append(pids, pid)
		}
	}
	return pids
}
