package forecast_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
)

// TestAWholePlanIsForecast reads what terraform show -json prints of a plan with this provider's resources.
func TestAWholePlanIsForecast(t *testing.T) {
	sim := simulator(t)
	terminal := providertest.NewTerminal(t)
	file := filepath.Join(t.TempDir(), "plan.out")
	config := asAdmin(strings.NewReplacer("%s", `priority_class_name = elastic_priority_class.urgent.name
 accelerators = "T4:1"
 accelerator_labels = { T4 = { "nvidia.com/gpu.product" = "T4" } }`).Replace(aTinyTask) + aHugeTask + `
resource "elastic_priority_class" "urgent" {
  name  = "urgent"
  value = 500
}
resource "elastic_training_job" "train" {
  name  = "train"
  image = "trainer"
  model = { name = "mnist" }
  data = { training = "synthetic://digits?records=1000", records_per_task = 100 }
  training = { minibatch_size = 10 }
  workers = { max = 2, resources = { cpu = "10m" } }
}
`)
	if printed, code := terminal.Run(t, config, "plan", "-out", file); code != 0 {
		t.Fatalf("plan exited with %d:\n%s", code, printed)
	}
	shown, code := terminal.Run(t, config, "show", "-json", file)
	if code != 0 {
		t.Fatalf("show exited with %d:\n%s", code, shown)
	}
	plan := filepath.Join(t.TempDir(), "plan.json")
	_, object, _ := strings.Cut(shown, "{")
	if err := os.WriteFile(plan, []byte("{"+object), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), sim, "forecast", "--plan", plan, "--json", "--kubeconfig", cluster.Kubeconfig)
	output, _ := command.Output()
	if code := command.ProcessState.ExitCode(); code != 12 {
		t.Errorf("exit code %d, want 12: one of the jobs can never run", code)
	}
	outcomes := map[string]string{}
	for line := range strings.Lines(string(output)) {
		var answer struct{ Address, Action, Outcome, Unknown, Skipped string }
		if err := json.Unmarshal([]byte(line), &answer); err != nil {
			t.Fatal(err)
		}
		outcomes[answer.Address] = answer.Action + " " + answer.Outcome + answer.Unknown + answer.Skipped
	}
	want := map[string]string{"elastic_task.huge": "create never", "elastic_task.tiny": "create never", "elastic_training_job.train": "create fits"}
	for address, outcome := range want {
		if outcomes[address] != outcome {
			t.Errorf("%s: %q, want %q:\n%s", address, outcomes[address], outcome, output)
		}
	}
}
