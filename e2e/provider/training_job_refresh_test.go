package provider_test

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

func TestTrainingJobReadsWhatItsMasterReports(t *testing.T) {
	name := "reports"
	config := asAdmin("") + trainingJob(name, "workers = { max = 4 }")
	shrunk := trainingjob.Status{
		Phase: trainingjob.PhaseRunning, StepsDone: 3120, StepsTotal: 8000, Loss: new(0.5), WorkersRunning: 1, WorkersPending: 1, Preemptions: 1,
	}
	steps(t,
		resource.TestStep{Config: config, ConfigPlanChecks: plannedJob(plancheck.ResourceActionCreate)},
		resource.TestStep{ // preempted and shrunk: no changes
			PreConfig:        func() { report(t, name, shrunk) },
			Config:           config,
			ConfigPlanChecks: plannedJob(plancheck.ResourceActionNoop),
			ConfigStateChecks: []statecheck.StateCheck{
				jobState("phase", text("Running")), jobState("steps_done", knownvalue.Int64Exact(3120)), jobState("steps_total", knownvalue.Int64Exact(8000)),
				jobState("workers_running", knownvalue.Int64Exact(1)), jobState("workers_pending", knownvalue.Int64Exact(1)), jobState("preemptions", knownvalue.Int64Exact(1)),
			},
		},
		resource.TestStep{ // a resize shows the resize, and nothing that the master reports
			PreConfig: func() {
				shrunk.StepsDone = 3200
				report(t, name, shrunk)
			},
			Config: asAdmin("") + trainingJob(name, "workers = { max = 2 }"),
			ConfigPlanChecks: resource.ConfigPlanChecks{
				PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction(job, plancheck.ResourceActionUpdate),
					plancheck.ExpectKnownValue(job, tfjsonpath.New("steps_done"), knownvalue.Int64Exact(3200)),
					plancheck.ExpectKnownValue(job, tfjsonpath.New("model_sha256"), knownvalue.Null()),
				},
				PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
			},
		},
		resource.TestStep{ // finished, and kept
			PreConfig: func() {
				report(t, name, trainingjob.Status{
					Phase: trainingjob.PhaseSucceeded, StepsDone: 8000, StepsTotal: 8000, ModelSHA256: strings.Repeat("ab", 32),
					Metrics: map[string]float64{"accuracy": 0.97}, OutputFiles: []string{"model.safetensors", "model.json"},
				})
			},
			Config:           asAdmin("") + trainingJob(name, "workers = { max = 2 }"),
			ConfigPlanChecks: plannedJob(plancheck.ResourceActionNoop),
			ConfigStateChecks: []statecheck.StateCheck{
				jobState("phase", text("Succeeded")), jobState("model_sha256", text(strings.Repeat("ab", 32))),
				jobState("metrics", knownvalue.MapExact(map[string]knownvalue.Check{"accuracy": knownvalue.Float64Exact(0.97)})),
				jobState("output_files", knownvalue.ListExact([]knownvalue.Check{text("model.safetensors"), text("model.json")})),
			},
		},
		resource.TestStep{ // its objects go by a TTL: it stays known
			PreConfig: func() { deleteJobByHand(t, name) },
			Config:    asAdmin("") + trainingJob(name, "workers = { max = 2 }"),
			ConfigPlanChecks: resource.ConfigPlanChecks{
				PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(job, plancheck.ResourceActionNoop)},
			},
			ConfigStateChecks: []statecheck.StateCheck{jobState("phase", text("Succeeded"))},
		},
	)
	nothingLeft(t, name)
}

func TestTrainingJobThatHasFinishedMayBeRecreated(t *testing.T) {
	name := "recreate"
	config := asAdmin("") + trainingJob(name, `on_finished = "recreate"`)
	steps(t,
		resource.TestStep{Config: config, ConfigPlanChecks: plannedJob(plancheck.ResourceActionCreate)},
		resource.TestStep{
			PreConfig:         func() { report(t, name, trainingjob.Status{Phase: trainingjob.PhaseFailed, Message: "no"}) },
			Config:            config,
			ConfigPlanChecks:  plannedJob(plancheck.ResourceActionDestroyBeforeCreate),
			ConfigStateChecks: []statecheck.StateCheck{jobState("phase", text("Pending"))},
		},
	)
	nothingLeft(t, name)
}

func deleteJobByHand(t *testing.T, name string) {
	t.Helper()
	err := adminClient(t).BatchV1().Jobs("default").Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)})
	if err != nil {
		t.Fatal(err)
	}
}

func TestTrainingJobThatDisappearsIsPlannedAgain(t *testing.T) {
	name := "disappears"
	config := asAdmin("") + trainingJob(name, "")
	steps(t,
		resource.TestStep{Config: config},
		resource.TestStep{ // at once: what the garbage collector has not removed yet is waited for
			PreConfig:        func() { deleteJobByHand(t, name) },
			Config:           config,
			ConfigPlanChecks: plannedJob(plancheck.ResourceActionCreate),
		},
	)
	nothingLeft(t, name)
}

func TestTrainingJobDrift(t *testing.T) {
	name := "drift"
	config := trainingJob(name, "workers = { max = 2 }\n labels = { team = \"vision\" }")
	edit := func(t *testing.T, key, from, to string) {
		t.Helper()
		live := jobConfig(t, name)
		if !strings.Contains(live.Data[key], from) {
			t.Fatalf("%s does not contain %q:\n%s", key, from, live.Data[key])
		}
		live.Data[key] = strings.Replace(live.Data[key], from, to, 1)
		if _, err := adminClient(t).CoreV1().ConfigMaps("default").Update(t.Context(), live, metav1.UpdateOptions{FieldManager: "kubectl-edit"}); err != nil {
			t.Fatal(err)
		}
	}
	steps(t,
		resource.TestStep{Config: asAdmin("") + config},
		resource.TestStep{ // labels and annotations of others are no difference
			PreConfig: func() {
				_, err := adminClient(t).BatchV1().Jobs("default").Patch(t.Context(), name, types.MergePatchType,
					[]byte(`{"metadata":{"labels":{"theirs":"x"},"annotations":{"theirs":"y"}}}`), metav1.PatchOptions{FieldManager: "somebody"})
				if err != nil {
					t.Fatal(err)
				}
			},
			Config:           asAdmin("") + config,
			ConfigPlanChecks: plannedJob(plancheck.ResourceActionNoop),
		},
		resource.TestStep{ // workers.json edited by hand is set back
			PreConfig:        func() { edit(t, trainingjob.WorkersKey, `"max": 2`, `"max": 7`) },
			Config:           asAdmin("") + config,
			ConfigPlanChecks: plannedJob(plancheck.ResourceActionUpdate),
			Check: func(*terraform.State) error {
				if got := liveWorkers(t, name).Max; got != 2 {
					t.Errorf("max %d", got)
				}
				return nil
			},
		},
		resource.TestStep{ // so does the model
			PreConfig:          func() { edit(t, trainingjob.ModelKey, "def loss(", "# edited\ndef loss(") },
			Config:             asAdmin("") + config,
			PlanOnly:           true,
			ExpectNonEmptyPlan: true,
		},
	)
	nothingLeft(t, name)
}
