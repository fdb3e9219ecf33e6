package underqueue_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

// TestATrainingJobInAQueueGetsItsMinimumBack has Job NAME-min deleted, which no job outside of a queue has, and then
// the Secret: the pods that are restarted with another one stay members of the group that Kueue has admitted.
func TestATrainingJobInAQueueGetsItsMinimumBack(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	config := asAdmin() + p.queue("8") + p.job(`wait_for = "running"`)
	a := p.acting()
	var before trainingjob.Status
	background := metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}
	p.steps(
		resource.TestStep{Config: config},
		resource.TestStep{
			PreConfig: func() {
				a.await("a step of two workers", func() bool { return a.status().StepsDone > 0 && a.status().WorkersRunning == 2 })
				if err := p.kube.BatchV1().Jobs(p.ns).Delete(t.Context(), trainingjob.MinJobName("digits"), background); err != nil {
					t.Fatal(err)
				}
				before = a.status()
			},
			Config: config, ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
			Check: func(*terraform.State) error {
				a.await("the work of two workers", func() bool { return a.status().WorkersRunning == 2 && a.status().StepsDone > before.StepsDone })
				return nil
			},
		},
		resource.TestStep{
			PreConfig: func() {
				if err := p.kube.CoreV1().Secrets(p.ns).Delete(t.Context(), trainingjob.CredentialsName("digits"), metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
				before = a.status()
			},
			Config: config, ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
			Check: func(*terraform.State) error {
				a.goesOn(before)
				a.await("two workers", func() bool { return a.status().WorkersRunning == 2 })
				return nil
			},
		},
	)
}
