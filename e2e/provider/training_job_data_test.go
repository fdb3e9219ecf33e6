package provider_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

func TestTrainingJobData(t *testing.T) {
	const data, name = "data.elastic_training_job.test", "looked-at"
	config := asAdmin("") + trainingJob(name, nowhere) + "\ndata \"elastic_training_job\" \"test\" {\n  name = elastic_training_job.test.name\n}\n"
	reads := func(attribute string, value knownvalue.Check) statecheck.StateCheck {
		return statecheck.ExpectKnownValue(data, tfjsonpath.New(attribute), value)
	}
	steps(t,
		resource.TestStep{
			Config:            config,
			ConfigStateChecks: []statecheck.StateCheck{reads("phase", text("Pending")), reads("uid", knownvalue.NotNull()), reads("model_sha256", knownvalue.Null()), reads("goodput_seconds", knownvalue.Null())},
		},
		resource.TestStep{
			PreConfig: func() {
				report(t, name, trainingjob.Status{Phase: trainingjob.PhaseRunning, StepsDone: 3, StepsTotal: 8, WorkersRunning: 1, Metrics: map[string]float64{"accuracy": 0.5}, GoodputSplit: &trainingjob.GoodputSplit{
					Seconds: map[trainingjob.GoodputPhase]float64{trainingjob.GoodputComputing: 2.5, trainingjob.GoodputRecovering: 1},
				}})
			},
			Config: config,
			ConfigStateChecks: []statecheck.StateCheck{
				reads("phase", text("Running")), reads("steps_done", knownvalue.Int64Exact(3)), reads("workers_running", knownvalue.Int64Exact(1)),
				reads("goodput_seconds", knownvalue.MapExact(map[string]knownvalue.Check{"computing": knownvalue.Float64Exact(2.5), "recovering": knownvalue.Float64Exact(1)})),
				reads("metrics", knownvalue.MapExact(map[string]knownvalue.Check{"accuracy": knownvalue.Float64Exact(0.5)})),
			},
		},
	)
	steps(t, resource.TestStep{
		Config:      asAdmin("") + "data \"elastic_training_job\" \"test\" {\n  name = \"nobodys\"\n}\n",
		ExpectError: says("Training job not found", "Job default/nobodys does not exist"),
	})
}
