package underqueue_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/torchtest"
)

// TestAnUrgentTaskTakesTheBurstWorkersOfAPyTorchJobAndGivesThemBack trains with a script's own process group in a queue
// of four CPUs: the master's, and three workers'. An urgent task needs two of them. The plan names the workers that it
// evicts, the job goes on with its minimum, and ends with three workers.
func TestAnUrgentTaskTakesTheBurstWorkersOfAPyTorchJobAndGivesThemBack(t *testing.T) {
	python := torchtest.Find(t)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	scripts := map[string]pyTorchScript{
		"formed anew in the same processes": {
			job: func(directory string) string {
				return fmt.Sprintf(`
  model    = { content = file("%[1]s/internal/trainer/runtime/framework/testdata/tally.py") }
  data     = { training = "indices://numbers?records=320", records_per_task = 32 }
  training = { epochs = 14, minibatch_size = 8, grads_to_wait = 4 }
  output   = %[2]q
  workers  = {
    command   = [%[3]q]
    elastic   = "collectives"
    max       = 3
    resources = { requests = { cpu = "1", memory = "64Mi" } }
    env       = { TALLY_RESULT = "%[2]s/result", TALLY_PACE = "0.2" }
  }`, root, directory, python)
			},
			trains: func(string) bool { return false }, // its status says so
			result: countedOnce,
		},
		"restarted with a script for torchrun": {
			job: func(directory string) string {
				return fmt.Sprintf(`
  model    = null
  data     = null
  training = null
  workers  = {
    command                  = [%[3]q, %[1]q, "--directory", %[2]q, "--pace", "0.3", "--epochs", "9", "--every", "5"]
    elastic                  = "restart"
    restart_interval_seconds = 5
    max                      = 3
    resources                = { requests = { cpu = "1", memory = "64Mi" } }
  }`, filepath.Join(root, "examples/pytorch/ddp.py"), directory, python)
			},
			trains: func(directory string) bool {
				_, err := os.Stat(filepath.Join(directory, "checkpoint.pt"))
				return err == nil
			},
			result: lostNoStep,
		},
	}
	for name, c := range map[string]struct{ imports, script, checkpoint string }{
		"restarted with sharded parameters":          {"from torch.distributed.fsdp import fully_shard", "fsdp2.py", "step-??????"},
		"restarted with a loop of Accelerate":        {"import accelerate", "accelerate_loop.py", "step-??????"},
		"restarted with the Trainer of Transformers": {"import transformers", "finetune.py", "checkpoint-*/trainer_state.json"},
	} {
		if torchtest.Has(t, c.imports) {
			scripts[name] = library(python, filepath.Join(root, "examples/pytorch", c.script), c.checkpoint)
		} else {
			t.Logf("%s is left out: %s fails", c.script, c.imports)
		}
	}
	for name, script := range scripts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newPlace(t).acting()
			directory := t.TempDir()
			before := asAdmin() + a.queue("4") + a.job(script.job(directory))
			urgent := before + fmt.Sprintf(`
resource "elastic_workload_priority_class" "urgent" {
  name  = "urgent-%[1]s"
  value = 1000
}
resource "elastic_task" "urgent" {
  name      = "urgent"
  namespace = %[1]q
  image     = %[2]q
  run       = "sleep 10"
  cpus      = "2"
  memory    = "1"
  queue     = { name = elastic_local_queue.test.name, workload_priority_class = elastic_workload_priority_class.urgent.name }
  wait_for  = "admitted"
}
`, a.ns, hostImage)
			r := providertest.NewTerminal(t)
			apply := func(config string) string {
				t.Helper()
				printed, code := r.Run(t, config, "apply", "-auto-approve")
				if code != 0 {
					t.Fatalf("apply exited with %d:\n%s", code, printed)
				}
				return printed
			}
			apply(before)
			members := func(n int) func() bool {
				return func() bool {
					ready := 0
					for _, w := range a.status().Workers {
						if w.State == "ready" {
							ready++
						}
					}
					return ready == n && a.status().WorkersRunning == n
				}
			}
			a.await("three workers", members(3))
			a.await("a step of them", func() bool { return script.trains(directory) || a.status().StepsDone > 0 })
			plan, code := r.Run(t, urgent, "plan")
			if code != 0 {
				t.Fatalf("plan exited with %d:\n%s", code, plan)
			}
			for _, victim := range []string{"digits-worker-1", "digits-worker-2", "continues with 1 of 3 workers"} {
				providertest.ExpectText(t, plan, victim)
			}
			apply(urgent)
			a.await("the minimum alone", func() bool {
				s := a.status()
				return s.WorkersRunning == 1 && len(s.Workers) > 0 && s.Workers[0].ID == 0
			})
			a.await("three workers again", func() bool { return a.status().WorkersRunning == 3 })
			a.await("the end", func() bool { return a.status().Phase.Finished() })
			if s := a.status(); s.Phase != trainingjob.PhaseSucceeded {
				t.Errorf("the job ended with %+v", s)
			}
			if _, err := a.kube.CoreV1().Pods(a.ns).Get(t.Context(), trainingjob.MasterName("digits"), metav1.GetOptions{}); err == nil {
				t.Error("a pod has the name of the Service")
			}
			script.result(t, directory)
			if printed, code := r.Run(t, urgent, "destroy", "-auto-approve"); code != 0 {
				t.Errorf("destroy exited with %d:\n%s", code, printed)
			}
			a.nothingLeft()
		})
	}
}

type pyTorchScript struct {
	job    func(directory string) string // lines of the resource
	trains func(directory string) bool
	result func(t *testing.T, directory string)
}

// library is an example of a library, which prints where it continues, and on how many ranks.
func library(python, script, checkpoint string) pyTorchScript {
	const epochs, stepsPerEpoch = 12, 20
	return pyTorchScript{
		job: func(directory string) string {
			return fmt.Sprintf(`
  model    = null
  data     = null
  training = null
  workers  = {
    command                  = ["/bin/sh", "-c", "exec %[3]s %[1]s --directory %[2]s --pace 0.3 --epochs %[4]d --every 5 >>%[2]s/log 2>&1"]
    elastic                  = "restart"
    restart_interval_seconds = 5
    max                      = 3
    resources                = { requests = { cpu = "1", memory = "64Mi" } }
  }`, script, directory, python, epochs)
		},
		trains: func(directory string) bool {
			found, _ := filepath.Glob(filepath.Join(directory, checkpoint))
			return len(found) > 0
		},
		result: func(t *testing.T, directory string) { continued(t, directory, epochs*stepsPerEpoch) },
	}
}

// continued checks that a script was started on one and on three workers, each time at a step that it had saved, and that
// it has computed all of them.
func continued(t *testing.T, directory string, steps int) {
	text, err := os.ReadFile(filepath.Join(directory, "log"))
	if err != nil {
		t.Fatal(err)
	}
	starts := regexp.MustCompile(`continues (?:at step|from \S*?)[ -]*(\d+|None) on (\d+) ranks`).FindAllStringSubmatch(string(text), -1)
	ranks := map[string]bool{}
	last := 0
	for i, s := range starts {
		ranks[s[2]] = true
		step, _ := strconv.Atoi(s[1]) // None is 0
		if step < last || ranks["3"] && ranks["1"] && step == 0 {
			t.Errorf("start %d begins at step %s, and the one before at %d", i+1, s[1], last)
		}
		last = step
	}
	if !ranks["1"] || !ranks["3"] || starts[len(starts)-1][2] != "3" {
		t.Errorf("started on one, and on three workers again? %q", starts)
	}
	if !regexp.MustCompile(fmt.Sprintf(`done after step %d\b`, steps)).Match(text) {
		t.Errorf("it has not done %d steps:\n%s", steps, text)
	}
	t.Logf("starts: %q", starts)
}

// countedOnce checks the counts of testdata/tally.py: each record once in each of 14 epochs, in steps of 32 records.
func countedOnce(t *testing.T, directory string) {
	text, err := os.ReadFile(filepath.Join(directory, "result"))
	if err != nil {
		t.Fatal(err)
	}
	var counts []float64
	if err := json.Unmarshal(text, &counts); err != nil || len(counts) != 320 {
		t.Fatalf("%d counts: %v", len(counts), err)
	}
	for record, n := range counts {
		if n != -14.0/32 {
			t.Errorf("record %d was applied %v times", record, -n*32)
		}
	}
}

// lostNoStep checks that examples/pytorch/ddp.py was started on one and on three workers, and each time where it had
// stopped: its workers were signalled to leave, and nobody was killed.
func lostNoStep(t *testing.T, directory string) {
	f, err := os.Open(filepath.Join(directory, "starts.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var sizes []int
	last := -1
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var start struct{ Ranks, Epoch, Position int }
		if err := json.Unmarshal(lines.Bytes(), &start); err != nil {
			t.Fatal(err)
		}
		if at := start.Epoch*960 + start.Position; at <= last {
			t.Errorf("start %d continues at record %d, not after %d", len(sizes), at, last)
		} else {
			last = at
		}
		sizes = append(sizes, start.Ranks)
	}
	t.Logf("started on %v workers; the last time at record %d", sizes, last)
	if len(sizes) < 3 || sizes[len(sizes)-1] != 3 || !slices.Contains(sizes, 1) {
		t.Errorf("started on %v workers, and not on three, one and three", sizes)
	}
}
