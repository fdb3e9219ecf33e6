package underqueue_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
)

// acting carries out actions on a place's job and queue, and looks at what they did: by `apply -invoke` where the
// command line has actions, and through the provider's protocol where it has none.
type acting struct {
	place
	server   *providertest.Server
	terminal *providertest.Terminal // nil without actions
}

func (p place) acting() acting {
	a := acting{place: p, server: providertest.NewServer(p.T, map[string]string{"config_path": cluster.Kubeconfig})}
	if providertest.Has(p.T, providertest.Actions) {
		a.terminal = providertest.NewTerminal(p.T)
	}
	return a
}

// do carries an action out, and checks what it said last.
func (a acting) do(action, name, wantText string) {
	a.Helper()
	if a.terminal != nil {
		config := asAdmin() + fmt.Sprintf("action %q \"test\" {\n  config {\n    name = %q\n    namespace = %q\n  }\n}\n", action, name, a.ns)
		printed, code := a.terminal.Run(a.T, config, "apply", "-auto-approve", "-invoke=action."+action+".test")
		a.Logf("$ terraform apply -invoke=action.%s.test\n%s", action, printed)
		if code != 0 || !strings.Contains(printed, wantText) {
			a.Fatalf("%s exited with %d, and does not say %q:\n%s", action, code, wantText, printed)
		}
		return
	}
	messages, wrong := a.server.Invoke(a.T, action, map[string]string{"name": name, "namespace": a.ns})
	providertest.NoErrors(a.T, nil, wrong)
	if len(messages) == 0 || !strings.Contains(messages[len(messages)-1], wantText) {
		a.Errorf("%s printed %q, and not %q at last", action, messages, wantText)
	}
}

func (a acting) status() trainingjob.Status {
	a.Helper()
	reported, err := a.kube.CoreV1().ConfigMaps(a.ns).Get(a.Context(), trainingjob.StatusName("digits"), metav1.GetOptions{})
	if err != nil {
		a.Fatal(err)
	}
	s, err := trainingjob.DecodeStatus(reported)
	if err != nil {
		a.Fatal(err)
	}
	return s
}

// running is how many of the job's pods run.
func (a acting) running() (n int) {
	a.Helper()
	pods, err := a.kube.CoreV1().Pods(a.ns).List(a.Context(), metav1.ListOptions{LabelSelector: trainingjob.LabelJobName + "=digits"})
	if err != nil {
		a.Fatal(err)
	}
	for _, p := range pods.Items {
		if p.Status.Phase == corev1.PodRunning {
			n++
		}
	}
	return n
}

// await waits for what a job's work brings about, which takes its workers many steps, and many seconds to start.
func (a acting) await(what string, ok func() bool) {
	a.Helper()
	a.awaitWithin(patience.Long, what, func(ctx context.Context) (string, bool, error) {
		if ok() {
			return "", true, nil
		}
		reported, err := a.kube.CoreV1().ConfigMaps(a.ns).Get(ctx, trainingjob.StatusName("digits"), metav1.GetOptions{})
		if err != nil {
			return "", false, err
		}
		return fmt.Sprint(reported.Data), false, nil
	})
}

// goesOn waits until a step after the given one is done, by a master after the given one.
func (a acting) goesOn(from trainingjob.Status) {
	a.Helper()
	a.await("further steps by another master", func() bool {
		s := a.status()
		if s.StepsDone < from.CheckpointStep {
			a.Fatalf("the job is at step %d, and a checkpoint of step %d was written", s.StepsDone, from.CheckpointStep)
		}
		return s.Generation > from.Generation && s.StepsDone > from.StepsDone
	})
}

func TestAJobIsSuspendedResumedAndCheckpointedByActions(t *testing.T) {
	for name, queued := range map[string]bool{"in a queue": true, "without a queue": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			config := asAdmin() + p.queue("8") + p.job(`wait_for = "running"`)
			if !queued {
				config = asAdmin() + p.job("wait_for = \"running\"\n  queue = null")
			}
			p.steps(resource.TestStep{Config: config, Check: func(*terraform.State) error {
				a := p.acting()
				a.await("a step", func() bool { return a.status().StepsDone > 0 })
				a.do("elastic_job_checkpoint", "digits", "written")
				if s := a.status(); s.CheckpointStep == 0 {
					return fmt.Errorf("no checkpoint: %+v", s)
				}
				a.do("elastic_job_suspend", "digits", "is suspended")
				a.await("the end of all pods", func() bool { return a.running() == 0 })
				suspended := a.status()
				a.do("elastic_job_resume", "digits", "is resumed")
				a.goesOn(suspended)
				return nil
			}})
		})
	}
}

func TestAQueueIsDrainedAndReleasedByActions(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	config := asAdmin() + p.queue("8") + p.job(`wait_for = "running"`)
	p.steps(resource.TestStep{Config: config, Check: func(*terraform.State) error {
		a := p.acting()
		a.await("a step", func() bool { return a.status().StepsDone > 0 })
		a.do("elastic_queue_hold", "user-queue", "running workloads continue")
		if a.running() == 0 {
			return fmt.Errorf("holding a queue ended what ran")
		}
		a.do("elastic_queue_drain", "user-queue", "are evicted")
		a.await("the end of all pods", func() bool { return a.running() == 0 })
		drained := a.status()
		a.do("elastic_queue_release", "user-queue", "admits workloads again")
		a.goesOn(drained)
		return nil
	}})
}

func TestActionsOnWhatIsNotThereOrNotOursSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	a := newPlace(t).acting()
	for action, wantText := range map[string]string{
		"elastic_job_suspend": "not found", "elastic_job_resume": "not found", "elastic_job_checkpoint": "not found",
		"elastic_queue_hold": "not found", "elastic_queue_drain": "not found", "elastic_queue_release": "not found",
	} {
		_, wrong := a.server.Invoke(t, action, map[string]string{"name": "nobody", "namespace": a.ns})
		if len(wrong) != 1 || !strings.Contains(strings.ToLower(wrong[0].Summary+wrong[0].Detail), wantText) || !strings.Contains(wrong[0].Summary+wrong[0].Detail, "nobody") {
			for _, d := range wrong {
				t.Logf("%s: %s", d.Summary, d.Detail)
			}
			t.Errorf("%s: %d errors, want one with %q", action, len(wrong), wantText)
		}
	}
}
