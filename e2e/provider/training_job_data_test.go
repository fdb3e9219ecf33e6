package provider_test

import (
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
			ConfigStateChecks: []statecheck.StateCheck{reads("phase", text("Pending")), reads("uid", knownvalue.NotNull()), reads("model_sha256", knownvalue.Null()), reads("goodput_seconds", knownvalue.Null()), reads("disruptions", knownvalue.ListSizeExact(0))},
		},
		resource.TestStep{
			PreConfig: func() {
				report(t, name, trainingjob.Status{Phase: trainingjob.PhaseRunning, StepsDone: 3, StepsTotal: 8, WorkersRunning: 1, Metrics: map[string]float64{"accuracy": 0.5}, GoodputSplit: &trainingjob.GoodputSplit{
					Seconds: map[trainingjob.GoodputPhase]float64{trainingjob.GoodputComputing: 2.5, trainingjob.GoodputRecovering: 1},
				}, Disruptions: &trainingjob.Disruptions{Count: 1, LostSteps: 2, LostSeconds: 1.5, Newest: []trainingjob.Disruption{{
					At: time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC), Role: trainingjob.RoleWorker, Step: 3, LostSteps: 2, LostSeconds: 1.5, Recovered: new(1.75),
					DisruptionCause: trainingjob.DisruptionCause{Pod: "victim", UID: "victims-uid", Kind: trainingjob.DisruptionPreempted, Reason: corev1.PodReasonPreemptionByScheduler},
				}}}})
				schedulersEvent(t)
			},
			Config: config,
			ConfigStateChecks: []statecheck.StateCheck{
				reads("phase", text("Running")), reads("steps_done", knownvalue.Int64Exact(3)), reads("workers_running", knownvalue.Int64Exact(1)),
				reads("goodput_seconds", knownvalue.MapExact(map[string]knownvalue.Check{"computing": knownvalue.Float64Exact(2.5), "recovering": knownvalue.Float64Exact(1)})),
				reads("disruptions", knownvalue.ListExact([]knownvalue.Check{knownvalue.ObjectExact(map[string]knownvalue.Check{
					"at": text("2026-05-04T10:00:00Z"), "role": text("worker"), "pod": text("victim"), "kind": text("preempted"), "reason": text("PreemptionByScheduler"),
					"message": knownvalue.Null(), "preemptor": text("pod default/urgent"), "step": knownvalue.Int64Exact(3), "lost_steps": knownvalue.Int64Exact(2),
					"lost_seconds": knownvalue.Float64Exact(1.5), "seconds_to_recover": knownvalue.Float64Exact(1.75), "seconds_to_full_size": knownvalue.Null(),
				})})),
				reads("metrics", knownvalue.MapExact(map[string]knownvalue.Check{"accuracy": knownvalue.Float64Exact(0.5)})),
			},
		},
	)
	steps(t, resource.TestStep{
		Config:      asAdmin("") + "data \"elastic_training_job\" \"test\" {\n  name = \"nobodys\"\n}\n",
		ExpectError: wantText("Training job not found", "Job default/nobodys does not exist"),
	})
}

// schedulersEvent is kube-scheduler's about a victim: only it names the preemptor.
func schedulersEvent(t *testing.T) {
	t.Helper()
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "victim.preempted"}, Reason: "Preempted", Message: "Preempted by pod urgents-uid on node n", Type: corev1.EventTypeNormal,
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "victim", UID: "victims-uid"},
		Related:        &corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "urgent", UID: "urgents-uid"},
		EventTime:      metav1.NowMicro(), Action: "Preempting", ReportingController: "default-scheduler", ReportingInstance: "s",
	}
	if _, err := adminClient(t).CoreV1().Events("default").Create(t.Context(), event, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}
