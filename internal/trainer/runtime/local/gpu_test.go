package local_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/job"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/torchtest"
)

// onDevice is how a script runs: NCCL refuses two ranks on one GPU, gloo lets them share it.
type onDevice struct {
	device, backend string
	workers         int
	signal          syscall.Signal // that a worker receives while it trains; 0 for none
}

var onGPU = map[string]onDevice{
	"one rank with NCCL":                       {"cuda", "nccl", 1, 0},
	"one rank with NCCL that is killed":        {"cuda", "nccl", 1, syscall.SIGKILL},
	"two ranks that share it":                  {"cuda", "gloo", 2, 0},
	"two ranks of which one is killed":         {"cuda", "gloo", 2, syscall.SIGKILL},
	"two ranks of which one is asked to leave": {"cuda", "gloo", 2, syscall.SIGTERM},
}

func TestALoopWithItsOwnCollectivesOnAGPUEqualsThatOnTheCPU(t *testing.T) {
	python := torchtest.FindGPU(t)
	want := loopOn(t, python, onDevice{"cpu", "gloo", 1, 0})
	for name, d := range onGPU {
		t.Run(name, func(t *testing.T) {
			got := loopOn(t, python, d)
			compareCollectiveRuns(t, got, want, int64(len(want.losses)))
			if got.most != d.workers {
				t.Errorf("the most ranks of a step were %d", got.most)
			}
		})
	}
}

func loopOn(t *testing.T, python string, d onDevice) collectiveRun {
	t.Helper()
	spec := trainingjob.Job{
		Name: "device", Namespace: "default", Model: trainingjob.Model{File: "../framework/testdata/device.py"},
		Command: []string{python}, Elastic: trainingjob.ElasticCollectives, Output: t.TempDir(),
		Data:       trainingjob.Data{Training: "indices://numbers?records=96", RecordsPerTask: 32},
		Training:   trainingjob.Training{Epochs: 20, MinibatchSize: 8, GradsToWait: 4, Seed: 7},
		Checkpoint: &trainingjob.Checkpoint{Steps: 5},
	}
	pace := "0"
	if d.signal != 0 {
		pace = "0.1"
	}
	log, result := filepath.Join(t.TempDir(), "log"), filepath.Join(t.TempDir(), "result")
	for name, value := range map[string]string{
		"LOOP_DEVICE": d.device, "LOOP_BACKEND": d.backend, "LOOP_PACE": pace, "COLLECTIVE_LOG": log, "COLLECTIVE_RESULT": result,
	} {
		t.Setenv(name, value)
	}
	j, text := load(t, spec, options(1, ""))
	d.train(t, j, text, spec.Output, func() bool {
		lines, _ := os.ReadFile(log)
		return strings.Count(string(lines), `"ranks": `+strconv.Itoa(d.workers)) > 20
	})
	return readCollectiveRun(t, log, result)
}

// train trains until the job has succeeded. A worker receives the signal when the script is ready for it.
func (d onDevice) train(t *testing.T, j *job.Job, text []byte, output string, ready func() bool) {
	t.Helper()
	least, sent := d.workers, d.signal == 0
	if !sent {
		least = 1
	}
	meanwhile := func(ctx context.Context, output string) {
		sent = sent || poll(ctx, func() bool {
			pids := workersOf(output)
			return ready() && len(pids) == d.workers && syscall.Kill(pids[0], d.signal) == nil
		})
	}
	ended := processes{least: least, most: d.workers, threads: 1, meanwhile: meanwhile}.train(t.Context(), t, j, text, output)
	if ended.Code != coordinator.ExitDone || !sent {
		t.Fatalf("the job ended with %d, signal sent %v: %s", ended.Code, sent, ended.Reason)
	}
}

func TestAScriptForTorchrunOnAGPUEndsWithTheWeightsOfTheCPU(t *testing.T) {
	python := torchtest.FindGPU(t)
	want := ddpOn(t, python, onDevice{"cpu", "gloo", 1, 0})
	for name, d := range onGPU {
		t.Run(name, func(t *testing.T) {
			for i, w := range ddpOn(t, python, d) {
				if !closeTo(w, want[i], 1e-4) {
					t.Errorf("weight %d is %v, and %v on the CPU", i, w, want[i])
				}
			}
		})
	}
}

// ddpOn returns the weights that examples/pytorch/ddp.py ends with.
func ddpOn(t *testing.T, python string, d onDevice) (weights []float64) {
	t.Helper()
	script, err := filepath.Abs("../../../../examples/pytorch/ddp.py")
	if err != nil {
		t.Fatal(err)
	}
	command, pace := []string{python}, "0"
	if d.device == "cpu" {
		command = []string{"env", "CUDA_VISIBLE_DEVICES=", python}
	}
	if d.signal != 0 {
		pace = "0.1"
	}
	state := t.TempDir()
	spec := trainingjob.Job{
		Name: "ddp", Namespace: "default", Output: t.TempDir(), Elastic: trainingjob.ElasticRestart, Restart: &trainingjob.Restart{IntervalSeconds: 2},
		Command: append(command, script, "--directory", state, "--epochs", "10", "--every", "4", "--pace", pace, "--backend", d.backend),
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
	d.train(t, j, text, spec.Output, func() bool {
		starts := startsOf(t, state)
		return hasSavedSinceItsStart(state) && len(starts) > 0 && starts[len(starts)-1].Ranks == d.workers
	})
	t.Logf("starts: %+v", startsOf(t, state))
	out, err := exec.CommandContext(t.Context(), python, "-c", `
import json, sys, torch
print(json.dumps(torch.load(sys.argv[1], map_location="cpu")["model"]["weight"].double().reshape(-1).tolist()))`, filepath.Join(state, "checkpoint.pt")).Output()
	if err == nil {
		err = json.Unmarshal(out, &weights)
	}
	if err != nil || len(weights) != 8 {
		t.Fatalf("the last checkpoint has the weights %v: %v", weights, err)
	}
	return weights
}
