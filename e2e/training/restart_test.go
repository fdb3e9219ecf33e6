package training_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/torchtest"
)

// TestAScriptForTorchrunGoesOnWithoutItsMasterAndStartsAgainWithoutALostWorker runs examples/pytorch/ddp.py in pods. First
// its master's process is killed, and the command goes on; then a worker's, and the command is started again.
func TestAScriptForTorchrunGoesOnWithoutItsMasterAndStartsAgainWithoutALostWorker(t *testing.T) {
	t.Parallel()
	python := torchtest.Find(t)
	state := t.TempDir()
	d := define(t, "../../examples/pytorch/ddp.py")
	d.Job.Name, d.Job.Model, d.Job.Data, d.Job.Training = "ddp", trainingjob.Model{}, trainingjob.Data{}, trainingjob.Training{}
	d.Job.Elastic, d.Job.Restart = trainingjob.ElasticRestart, &trainingjob.Restart{IntervalSeconds: 5}
	// The script is the job's, so that it is the last argument: sh gives it its own.
	d.Job.Command = []string{"/bin/sh", "-c", `exec ` + python + ` "$0" --directory "$STATE" --every 4 --pace 0.2 --epochs 5`}
	d.Workers.Env = map[string]string{"STATE": state}
	if problems := d.Problems(); len(problems) > 0 {
		t.Fatal(problems)
	}
	j := start(t, d)
	started := func() (ranks []int) {
		text, _ := os.ReadFile(filepath.Join(state, "starts.jsonl"))
		for line := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n") {
			var s struct{ Ranks int }
			if json.Unmarshal([]byte(line), &s) == nil {
				ranks = append(ranks, s.Ranks)
			}
		}
		return ranks
	}
	twoRanks := func(s trainingjob.Status) bool {
		return s.WorkersRunning == 2 && len(s.Workers) == 2 && s.Workers[0].State == "ready" && s.Workers[1].State == "ready"
	}
	first := j.awaitStatus("two ranks", twoRanks)
	j.await("a checkpoint", func(context.Context) (string, bool, error) {
		_, err := os.Stat(filepath.Join(state, "checkpoint.pt"))
		return fmt.Sprint(err), err == nil, nil
	})
	if first.StepsTotal != 0 || first.Starts == 0 {
		t.Errorf("the status of a command: %+v", first)
	}
	before, workers := len(started()), j.workersAlive()
	_, master := j.supervised()
	if err := syscall.Kill(master, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	j.awaitStatus("the next master, with both workers", func(s trainingjob.Status) bool { return s.Generation == 2 && twoRanks(s) })
	if now := started(); len(now) != before || len(j.workersAlive()) != len(workers) {
		t.Errorf("the command was started on %v workers, %d times before its master was killed", now, before)
	}
	if err := syscall.Kill(j.worker(1), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	j.await("another start", func(context.Context) (string, bool, error) {
		return fmt.Sprint(started()), len(started()) > before, nil
	})
	j.awaitSuccess()
	t.Logf("started on %v workers", started())
}
