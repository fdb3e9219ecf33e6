package local_test

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/job"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/torchtest"
)

// TestTheExamplesOfLibrariesContinueFromTheirCheckpointsWhenAWorkerIsKilled runs them with the library where it is
// installed, and otherwise with a module of testdata/libraries that offers the same calls: it needs the same variables
// of the environment, and keeps the same files. What has no such module is left out where it is not installed.
func TestTheExamplesOfLibrariesContinueFromTheirCheckpointsWhenAWorkerIsKilled(t *testing.T) {
	python := torchtest.Find(t)
	for script, c := range map[string]struct {
		imports, checkpoint string // there is a checkpoint when the worker is killed
		standIn             bool
		epochs              int
	}{
		"accelerate_loop.py": {"import accelerate", "step-??????", true, 60},
		"huggingface.py":     {"import transformers", "checkpoint-*/trainer_state.json", true, 60},
		"lightning_loop.py":  {"import lightning", "last.ckpt", true, 60},
		"finetune.py":        {"import transformers", "checkpoint-*/trainer_state.json", false, 5},
		"fsdp2.py":           {"from torch.distributed.fsdp import fully_shard", "step-??????", false, 30},
	} {
		installed := torchtest.Has(t, c.imports)
		if !installed && !c.standIn {
			t.Logf("%s is left out: %s fails", script, c.imports)
			continue
		}
		t.Run(script, func(t *testing.T) {
			if !installed {
				t.Logf("%s fails; a module with the same calls stands in for it", c.imports)
				libraries, err := filepath.Abs("testdata/libraries")
				if err != nil {
					t.Fatal(err)
				}
				t.Setenv("PYTHONPATH", libraries)
			}
			path, err := filepath.Abs(filepath.Join("../../../../examples/pytorch", script))
			if err != nil {
				t.Fatal(err)
			}
			const stepsPerEpoch = 20
			state := t.TempDir()
			spec := trainingjob.Job{
				Name: "library", Namespace: "default", Output: t.TempDir(), Elastic: trainingjob.ElasticRestart, Restart: &trainingjob.Restart{IntervalSeconds: 2},
				Command: []string{python, path, "--directory", state, "--epochs", strconv.Itoa(c.epochs)},
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
			log := &words{}
			killed := false
			ended := processes{least: 1, most: 2, threads: 1, log: log, meanwhile: func(ctx context.Context, output string) {
				killed = poll(ctx, func() bool {
					found, _ := filepath.Glob(filepath.Join(state, c.checkpoint))
					return len(found) > 0 && kill(workersOf(output), syscall.SIGKILL)
				})
			}}.train(t.Context(), t, j, text, spec.Output)
			if ended.Code != coordinator.ExitDone || !killed {
				t.Fatalf("the job ended with %d, killed %v: %s\n%s", ended.Code, killed, ended.Reason, log.text())
			}
			starts := regexp.MustCompile(`continues (?:at step|from \S*?)[ -]*(\d+|None) on (\d+) ranks`).FindAllStringSubmatch(log.text(), -1)
			if len(starts) < 2 || starts[0][1] != "0" && starts[0][1] != "None" {
				t.Fatalf("it started %q:\n%s", starts, log.text())
			}
			for i, s := range starts[1:] {
				if step, err := strconv.Atoi(s[1]); err != nil || step == 0 {
					t.Errorf("start %d begins anew: %q", i+2, s[0])
				}
			}
			if done := "done after step " + strconv.Itoa(c.epochs*stepsPerEpoch); !regexp.MustCompile(done + `\b`).MatchString(log.text()) {
				t.Errorf("it did not say %q:\n%s", done, log.text())
			}
			t.Logf("starts: %q", starts)
		})
	}
}

// words are what workers print.
type words struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (w *words) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buffer.Write(b)
}

func (w *words) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buffer.String()
}
