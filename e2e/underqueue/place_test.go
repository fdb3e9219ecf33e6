package underqueue_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
	kueueclient "github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/client"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/await"
)

// place is a namespace, and the names of a test's own objects.
type place struct {
	*testing.T
	kube  kubernetes.Interface
	kueue *kueueclient.Client
	ns    string
}

func newPlace(t *testing.T) place {
	t.Helper()
	p := place{T: t, ns: cluster.Namespace(t)}
	var err error
	if p.kube, err = cluster.Client(); err != nil {
		t.Fatal(err)
	}
	if p.kueue, err = cluster.Kueue(); err != nil {
		t.Fatal(err)
	}
	return p
}

// asAdmin is the provider's configuration for the shared cluster.
func asAdmin() string {
	return fmt.Sprintf("provider \"elastic\" {\n  config_path = %q\n}\n", cluster.Kubeconfig)
}

// queue is a queue of so many CPUs, with two classes.
func (p place) queue(cpus string) string {
	return fmt.Sprintf(`
resource "elastic_resource_flavor" "test" {
  name = %[1]q
}
resource "elastic_cluster_queue" "test" {
  name               = %[1]q
  namespace_selector = {}
  resource_groups = [{
    covered_resources = ["cpu", "memory"]
    flavors = [{
      name      = elastic_resource_flavor.test.name
      resources = [{ name = "cpu", nominal_quota = %[2]q }, { name = "memory", nominal_quota = "64Gi" }]
    }]
  }]
  preemption = { within_cluster_queue = "LowerPriority" }
}
resource "elastic_local_queue" "test" {
  name          = "user-queue"
  namespace     = %[1]q
  cluster_queue = elastic_cluster_queue.test.name
}
resource "elastic_workload_priority_class" "low" {
  name  = "low-%[1]s"
  value = 10
}
resource "elastic_workload_priority_class" "mid" {
  name  = "mid-%[1]s"
  value = 100
}
`, p.ns, cpus)
}

// job is a job of two CPUs, and one more, in that queue; lines override its own or add to them.
func (p place) job(lines string) string {
	small := `resources = { requests = { cpu = "1", memory = "64Mi" } }`
	attributes := []struct{ key, value string }{
		{"image", fmt.Sprintf("%q", image)},
		{"model", `{ content = file("ROOT/internal/trainer/runtime/local/testdata/reference_model.py") }`},
		{"data", `{ training = "synthetic://digits?records=40000&seed=1", records_per_task = 100 }`},
		{"training", `{ minibatch_size = 10, grads_to_wait = 2, epochs = 100 }`},
		{"master", "{ " + small + " }"},
		{"workers", "{ max = 2, " + small + " }"},
		{"queue", `{
    name                 = elastic_local_queue.test.name
    workload_priority_class       = elastic_workload_priority_class.low.name
    min_workload_priority_class = elastic_workload_priority_class.mid.name
  }`},
	}
	var b strings.Builder
	for _, a := range attributes {
		if !regexp.MustCompile(`(?m)^\s*` + a.key + `\s*=`).MatchString(lines) {
			fmt.Fprintf(&b, "  %s = %s\n", a.key, a.value)
		}
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		p.Fatal(err)
	}
	text := fmt.Sprintf("resource \"elastic_training_job\" \"test\" {\n  name = \"digits\"\n  namespace = %q\n%s%s\n}\n", p.ns, b.String(), lines)
	return strings.Replace(text, "ROOT", root, 1)
}

func (p place) steps(steps ...resource.TestStep) {
	p.Helper()
	resource.Test(p.T, resource.TestCase{IsUnitTest: true, ProtoV6ProviderFactories: providertest.Factories(p.T, nil), Steps: steps})
}

// planned checks the action on the job, and that nothing is left to do after it.
func planned(action plancheck.ResourceActionType) resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{
		PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(job, action)},
		PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
	}
}

func phaseIs(phase trainingjob.Phase) []statecheck.StateCheck {
	return []statecheck.StateCheck{statecheck.ExpectKnownValue(job, tfjsonpath.New("phase"), knownvalue.StringExact(string(phase)))}
}

// nothingLeft checks that no pod, Job or workload is there; the garbage collector may take its time.
func (p place) nothingLeft() {
	p.Helper()
	p.await("nothing left", func(ctx context.Context) (string, bool, error) {
		pods, err := p.kube.CoreV1().Pods(p.ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return "", false, err
		}
		jobs, err := p.kube.BatchV1().Jobs(p.ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return "", false, err
		}
		workloads, err := p.kueue.Workloads(p.ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return "", false, err
		}
		return fmt.Sprintf("%d pods, %d Jobs, %d workloads", len(pods.Items), len(jobs.Items), len(workloads.Items)),
			len(pods.Items)+len(jobs.Items)+len(workloads.Items) == 0, nil
	})
}

// await polls until ok, and fails with what it saw last. It works in a test's cleanup too.
func (p place) await(what string, ok func(context.Context) (string, bool, error)) {
	p.Helper()
	p.awaitWithin(patience.Medium, what, ok)
}

func (p place) awaitWithin(limit time.Duration, what string, ok func(context.Context) (string, bool, error)) {
	p.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.Context()), limit)
	defer cancel()
	err := await.Until(ctx, what, 50*time.Millisecond, func(ctx context.Context) error {
		seen, done, err := ok(ctx)
		if err == nil && !done {
			err = errors.New(seen)
		}
		return err
	})
	if err != nil {
		p.Fatal(err)
	}
}

// awaitGated waits until the pods of master and minimum workers wait behind their gates.
func (p place) awaitGated() {
	p.Helper()
	p.await("two gated pods and their workload", func(ctx context.Context) (string, bool, error) {
		pods, err := p.kube.CoreV1().Pods(p.ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return "", false, err
		}
		workloads, err := p.kueue.Workloads(p.ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return "", false, err
		}
		gated := slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return len(pod.Spec.SchedulingGates) == 0 })
		waits := len(workloads.Items) == 1 && len(workloads.Items[0].Status.Conditions) > 0
		return fmt.Sprintf("%d pods, %d workloads", len(gated), len(workloads.Items)), len(gated) == 2 && waits, nil
	})
}
