package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/torchtest"
)

// The example of two PyTorch jobs under a queue.
const elasticPyTorchExample = "elastic-pytorch"

// Names of the scenario's jobs: one with collectives of its own, and one whose command is started again. The task is
// UrgentJob.
const (
	LoopJob = "loop"
	DDPJob  = "ddp"
)

// Sizes of the two jobs, and numbers of their scripts.
const (
	pyTorchWorkers = 3
	pyTorchMinimum = 1
	pyTorchEpochs  = 20
	pyTorchPace    = "0.3" // seconds: see the example's variable
	ddpRecords     = 960   // of an epoch of ddp.py
)

// runElasticPyTorch runs two PyTorch jobs in a Kueue queue. An urgent task takes all workers above their minimum, and both
// grow back.
func runElasticPyTorch(ctx context.Context, r *runner) error {
	shared := r.cluster.SharedDir
	if err := os.MkdirAll(filepath.Join(shared, LoopJob), 0o755); err != nil {
		return fmt.Errorf("make the directory of the jobs' files: %w", err)
	}
	r.vars["image"], r.vars["python"], r.vars["shared_host_path"] = r.cluster.Image, torchtest.Python(), shared
	r.vars["epochs"], r.vars["pace"], r.vars["urgent"] = strconv.Itoa(pyTorchEpochs), pyTorchPace, "false"

	r.beginStage(StageSubmit, "terraform apply: a queue of 3.2 CPUs, and jobs %s and %s, of a master and one to three workers each.", LoopJob, DDPJob)
	if err := r.apply(ctx, StageSubmit); err != nil {
		return err
	}
	if err := r.waitForWorkers(ctx, "three workers", pyTorchWorkers); err != nil {
		return err
	}
	if err := waitForFile(ctx, filepath.Join(shared, DDPJob, "checkpoint.pt")); err != nil {
		return err
	}

	r.vars["urgent"] = "true"
	r.beginStage(StageForecast, "terraform plan: what would task %s evict, which needs two CPUs?", UrgentJob)
	if err := r.forecast(ctx, StageShrink); err != nil {
		return err
	}

	r.beginStage(StageShrink, "terraform apply: submit task %s.", UrgentJob)
	if err := r.apply(ctx, StageShrink); err != nil {
		return err
	}
	if err := r.waitForWorkers(ctx, "one worker", pyTorchMinimum); err != nil {
		return err
	}

	r.beginStage(StageGrow, "No user action: %s finishes.", UrgentJob)
	if err := r.waitForWorkers(ctx, "three workers again", pyTorchWorkers); err != nil {
		return err
	}
	if err := r.plan(ctx, StageGrow); err != nil {
		return err
	}
	if err := r.waitForSuccess(ctx, LoopJob, DDPJob); err != nil {
		return err
	}

	r.beginStage(StageFinished, "All have finished.")
	if err := r.plan(ctx, StageFinished); err != nil {
		return err
	}
	if err := r.destroy(ctx); err != nil {
		return err
	}
	r.beginStage(StageCompare, "The same training once more, undisturbed and without a cluster: are the weights the same?")
	return errors.Join(r.compareLoop(ctx, shared), r.compareDDP(ctx, shared))
}

// waitForWorkers waits until both jobs run with so many workers.
func (r *runner) waitForWorkers(ctx context.Context, what string, workers int) error {
	for _, job := range []string{LoopJob, DDPJob} {
		running := func(h *eventlog.History) (bool, error) {
			status := h.Job(job).Last().Status
			trains := status.Phase == trainingjob.PhaseRunning && status.WorkersRunning == workers && (status.StepsDone > 0 || status.Starts > 0)
			return trains, notFailed(job, status)
		}
		if err := r.log.Wait(ctx, job+" runs with "+what, finishLimit, running); err != nil {
			return err
		}
	}
	return nil
}

// waitForFile waits until a script has written a file, which no status reports.
func waitForFile(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	ticks := time.NewTicker(100 * time.Millisecond)
	defer ticks.Stop()
	for {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", path, ctx.Err())
		}
	}
}

// compareLoop compares what the loop has written with an undisturbed run.
func (r *runner) compareLoop(ctx context.Context, shared string) error {
	var got, want struct{ Uses, Weights []float64 }
	alone := filepath.Join(r.dir, "undisturbed-loop.json")
	err := r.trainScript(ctx, map[string]string{"RESULT": alone, "PACE": "0"},
		"--worker-command", torchtest.Python(), "--elastic", trainingjob.ElasticCollectives,
		"--model-file", filepath.Join(r.examples, elasticPyTorchExample, "loop.py"),
		"--train-data-dir", "indices://lines?records=320", "--record-per-task", "32",
		"--minibatch-size", "8", "--grads-to-wait", "4", "--num-epoch", strconv.Itoa(pyTorchEpochs))
	if err := errors.Join(err, readJSON(filepath.Join(shared, LoopJob, "result.json"), &got), readJSON(alone, &want)); err != nil {
		return err
	}
	r.log.Add(eventlog.Event{Script: &eventlog.ScriptResult{
		Job: LoopJob, Weights: got.Weights, Undisturbed: want.Weights, Uses: got.Uses, Epochs: pyTorchEpochs,
	}})
	return nil
}

// compareDDP compares the last checkpoint of ddp.py with that of an undisturbed run.
func (r *runner) compareDDP(ctx context.Context, shared string) error {
	directory, alone := filepath.Join(shared, DDPJob), filepath.Join(r.dir, "undisturbed-ddp")
	command := fmt.Sprintf("%s %s --directory %s --epochs %d", torchtest.Python(), filepath.Join(r.examples, "pytorch", "ddp.py"), alone, pyTorchEpochs)
	if err := r.trainScript(ctx, nil, "--worker-command", command, "--elastic", trainingjob.ElasticRestart); err != nil {
		return err
	}
	result := eventlog.ScriptResult{Job: DDPJob, Epochs: pyTorchEpochs}
	text, err := os.ReadFile(filepath.Join(directory, "starts.jsonl"))
	if err != nil {
		return fmt.Errorf("the starts of %s: %w", DDPJob, err)
	}
	for line := range strings.Lines(string(text)) {
		var start struct{ Ranks, Epoch, Position int }
		if err := json.Unmarshal([]byte(line), &start); err != nil {
			return fmt.Errorf("the starts of %s: %w", DDPJob, err)
		}
		result.Starts = append(result.Starts, eventlog.ScriptStart{Ranks: start.Ranks, Records: start.Epoch*ddpRecords + start.Position})
	}
	for from, into := range map[string]*[]float64{directory: &result.Weights, alone: &result.Undisturbed} {
		var weights strings.Builder
		const program = `import json, sys, torch
print(json.dumps(torch.load(sys.argv[1])["model"]["weight"].reshape(-1).tolist()))`
		if err := runWithOutput(ctx, &weights, torchtest.Python(), "-c", program, filepath.Join(from, "checkpoint.pt")); err != nil {
			return fmt.Errorf("the last checkpoint of %s: %w", DDPJob, err)
		}
		if err := json.Unmarshal([]byte(weights.String()), into); err != nil {
			return fmt.Errorf("the last checkpoint of %s: %w", DDPJob, err)
		}
	}
	r.log.Add(eventlog.Event{Script: &result})
	return nil
}

// trainScript runs `elastic-trainer train` with one worker and further variables of the environment.
func (r *runner) trainScript(ctx context.Context, env map[string]string, args ...string) error {
	output := filepath.Join(r.dir, "undisturbed")
	cmd := exec.CommandContext(ctx, r.tools.Trainer, append([]string{"train", "--num-worker", "1", "--output", output}, args...)...)
	cmd.Env = os.Environ()
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("train without a cluster: %w\n%s", err, text)
	}
	return nil
}

func readJSON(path string, value any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, value); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
