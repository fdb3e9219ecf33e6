package task_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	controllerconstants "sigs.k8s.io/kueue/pkg/controller/constants"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
	"github.com/elastic-training/terraform-provider-elastic/internal/eventually"
)

// queue is the configuration of a queue with quota for so many CPUs, of two classes, and of a flavor for all nodes. All
// are named after the namespace, since most are cluster-wide.
func queue(ns string, cpus int) string {
	return fmt.Sprintf(`
resource "elastic_resource_flavor" "any" {
  name = "%[1]s"
}

resource "elastic_cluster_queue" "team" {
  name               = "%[1]s"
  namespace_selector = {}
  resource_groups = [{
    covered_resources = ["cpu"]
    flavors           = [{ name = elastic_resource_flavor.any.name, resources = [{ name = "cpu", nominal_quota = "%[2]d" }] }]
  }]
  preemption = { within_cluster_queue = "LowerPriority" }
}

resource "elastic_local_queue" "user" {
  name          = "user-queue"
  namespace     = "%[1]s"
  cluster_queue = elastic_cluster_queue.team.name
}

resource "elastic_workload_priority_class" "low" {
  name  = "%[1]s-low"
  value = 100
}

resource "elastic_workload_priority_class" "high" {
  name  = "%[1]s-high"
  value = 1000
}
`, ns, cpus)
}

// queuedTask is a task of the queue that requests the given CPUs.
func queuedTask(name, class, ns string, cpus int, lines string) string {
	return fmt.Sprintf(`
resource "elastic_task" %[1]q {
  name           = %[1]q
  namespace      = %[3]q
  image          = "debian"
  cpus           = "%[4]d"
  queue          = { name = elastic_local_queue.user.name, workload_priority_class = elastic_workload_priority_class.%[2]s.name }
  timeouts       = { create = "60s", update = "60s", delete = "60s" }
%[5]s
}
`, name, class, ns, cpus, lines)
}

// workloadOf is Kueue's Workload of a task; nil while there is none.
func workloadOf(ctx context.Context, t *testing.T, ns, name string) *kueue.Workload {
	t.Helper()
	live, err := client(t).BatchV1().Jobs(ns).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	list, err := queues(t).Workloads(ns).List(ctx, metav1.ListOptions{LabelSelector: controllerconstants.JobUIDLabel + "=" + string(live.UID)})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Items) == 0 {
		return nil
	}
	return &list.Items[0]
}

func awaitRunning(t *testing.T, ns, name string) {
	t.Helper()
	await(t, "task "+name, func(ctx context.Context) (string, bool) {
		live, err := client(t).BatchV1().Jobs(ns).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%+v", live.Status), !*live.Spec.Suspend && live.Status.Ready != nil && *live.Status.Ready > 0
	})
}

func TestALowTaskMakesRoomForAHighOneAndRunsAgain(t *testing.T) {
	t.Parallel()
	ns, r := namespace(t), providertest.NewTerminal(t)
	released := t.TempDir() + "/released"
	low := queuedTask("low", "low", ns, 4, "run = \"sleep 600\"\n wait_for = \"running\"")
	high := queuedTask("high", "high", ns, 4, fmt.Sprintf("run = \"until test -e %s; do sleep 0.1; done\"\n wait_for = \"running\"\n depends_on = [elastic_task.low]", released))
	data := "data \"elastic_workloads\" \"all\" {\n namespace = \"" + ns + "\"\n}\noutput \"workloads\" {\n value = { for w in data.elastic_workloads.all.workloads : w.owner.name => w }\n}\n"
	onlyLow, both := asAdmin(queue(ns, 4)+low), asAdmin(queue(ns, 4)+low+high)
	t.Cleanup(func() {
		if printed, code := r.Run(t, both, "destroy", "-auto-approve"); code != 0 {
			t.Errorf("destroy exited with %d:\n%s", code, printed)
		}
	})

	if printed, code := r.Run(t, onlyLow, "apply", "-auto-approve"); code != 0 || strings.Count(printed, "Warning: ") != 1 {
		t.Fatalf("apply exited with %d:\n%s", code, printed)
	} else {
		providertest.ExpectText(t, printed, "Warning: "+ns+"/low will start without evicting any pods")
	}
	uid := job(t, ns, "low").UID
	r.ExpectNoChanges(t, onlyLow)

	printed, code := r.Run(t, both, "apply", "-auto-approve")
	if code != 0 {
		t.Fatalf("apply exited with %d:\n%s", code, printed)
	}
	providertest.ExpectText(t, printed, "Warning: "+ns+"/high will preempt", "evicts  workload "+ns+"/job-low-", "task "+ns+"/low is queued again, first in line")
	r.ExpectNoChanges(t, both)
	if live := job(t, ns, "low"); !*live.Spec.Suspend || live.UID != uid {
		t.Errorf("low was not evicted: %+v", live.Status)
	}
	providertest.ExpectText(t, show(t, r, both, "elastic_task.low"), `phase = "Queued"`, `preemptions = 1`, `reason = "Pending:`, `workload = "job-low-`)

	// The data source is read in a directory of its own, so that the tasks' plans stay empty.
	look := providertest.NewTerminal(t)
	printed, code = look.Run(t, asAdmin(data), "apply", "-auto-approve")
	if code != 0 {
		t.Fatalf("apply exited with %d:\n%s", code, printed)
	}
	providertest.ExpectText(t, printed, `high = {`, `admitted = true`, `cluster_queue = "`+ns+`"`, `phase = "Admitted"`, `priority = 1000`, `queue = "user-queue"`)
	providertest.ExpectText(t, printed, `low = {`, `admitted = false`, `Preempted = 1`, `insufficient unused quota for cpu`, `phase = "Pending"`, `preempted_by = {`, `name = "job-high-`)

	touch(t, released)
	await(t, "the high task's end", func(ctx context.Context) (string, bool) {
		live := job(t, ns, "high")
		return fmt.Sprintf("%+v", live.Status), live.Status.Succeeded == 1
	})
	awaitRunning(t, ns, "low")
	r.ExpectNoChanges(t, both)
	if live := job(t, ns, "low"); live.UID != uid {
		t.Error("the low task was replaced")
	}
	providertest.ExpectText(t, show(t, r, both, "elastic_task.low"), `phase = "Running"`, `preemptions = 1`)
	providertest.ExpectText(t, show(t, r, both, "elastic_task.high"), `phase = "Succeeded"`)
}

// show is the state of a resource after a refresh.
func show(t *testing.T, r *providertest.Terminal, config, address string) string {
	t.Helper()
	if printed, code := r.Run(t, config, "apply", "-refresh-only", "-auto-approve"); code != 0 {
		t.Fatalf("refresh exited with %d:\n%s", code, printed)
	}
	printed, _ := r.Run(t, config, "state", "show", address)
	return strings.Join(strings.Fields(printed), " ")
}

func TestAQueuedTaskChangesAsFarAsKueueLetsIt(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	others := queue(ns, 1) + fmt.Sprintf("resource \"elastic_local_queue\" \"other\" {\n  name = \"other-queue\"\n  namespace = %q\n  cluster_queue = elastic_cluster_queue.team.name\n}\n", ns)
	config := func(cpus int, class, queue, lines string) string {
		return asAdmin(others + fmt.Sprintf(`
resource "elastic_task" "test" {
  name           = "queued"
  namespace      = %q
  image          = "debian"
  run            = "sleep 600"
  cpus           = "%d"
  queue          = { name = elastic_local_queue.%s.name, workload_priority_class = %s }
  timeouts       = { create = "60s", update = "60s", delete = "60s" }
  %s
}
`, ns, cpus, queue, class, lines))
	}
	const low, high = "elastic_workload_priority_class.low.name", "elastic_workload_priority_class.high.name"
	expect := func(check func(*kueue.Workload) bool) func(*terraform.State) error {
		return func(*terraform.State) error {
			await(t, "the workload", func(ctx context.Context) (string, bool) {
				w := workloadOf(ctx, t, ns, "queued")
				if w == nil {
					return "there is none", false
				}
				return fmt.Sprintf("%+v", w.Spec), check(w)
			})
			return nil
		}
	}
	steps(t,
		resource.TestStep{ // too large for the queue: it waits
			Config: config(2, low, "user", ""), ConfigPlanChecks: planned(plancheck.ResourceActionCreate),
			ConfigStateChecks: []statecheck.StateCheck{state("phase", text("Queued"))},
			Check:             expect(func(w *kueue.Workload) bool { return *w.Spec.Priority == 100 && w.Spec.QueueName == "user-queue" }),
		},
		resource.TestStep{ // its class, right after create
			Config: config(2, high, "user", ""), ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
			Check: expect(func(w *kueue.Workload) bool { return *w.Spec.Priority == 1000 }),
		},
		resource.TestStep{ // while it waits it can change the queue
			Config: config(2, high, "other", ""), ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
			Check: expect(func(w *kueue.Workload) bool { return w.Spec.QueueName == "other-queue" }),
		},
		resource.TestStep{ // one that fits
			Config: config(1, low, "other", `wait_for = "admitted"`), ConfigPlanChecks: planned(plancheck.ResourceActionReplace),
			ConfigStateChecks: []statecheck.StateCheck{state("workload", knownvalue.NotNull()), state("reason", knownvalue.Null())},
		},
		resource.TestStep{ // the class also while it runs
			Config: config(1, high, "other", ""), ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
			Check: expect(func(w *kueue.Workload) bool { return *w.Spec.Priority == 1000 && w.Status.Admission != nil }),
		},
		resource.TestStep{ // but not the queue
			Config: config(1, high, "user", ""), ConfigPlanChecks: planned(plancheck.ResourceActionReplace),
		},
		resource.TestStep{ // and it cannot lose its class
			Config: config(1, "null", "user", ""), ConfigPlanChecks: planned(plancheck.ResourceActionReplace),
		},
	)
}

func TestTheQueueAndTheClassAreLookedFor(t *testing.T) {
	t.Parallel()
	ns, r := namespace(t), providertest.NewTerminal(t)
	config := func(class string) string {
		return block(ns, "lonely", fmt.Sprintf("queue = { name = \"nobodys\"\n %s }\n cpus = \"1\"\n wait_for = \"admitted\"\n", class))
	}
	printed, code := r.Run(t, config(`workload_priority_class = "nobodys-class"`), "apply", "-auto-approve")
	if code != 1 {
		t.Fatalf("apply exited with %d:\n%s", code, printed)
	}
	providertest.ExpectText(t, printed, "Warning: LocalQueue nobodys not found") // the order of warnings has no meaning
	providertest.ExpectText(t, printed, "Warning: WorkloadPriorityClass nobodys-class not found",
		"Error: WorkloadPriorityClass not found", "elastic_workload_priority_class.NAME.name")
	nothingLeft(t.Context(), t, ns)

	slow := config("") // which waits for a minute, and ends earlier
	t.Cleanup(func() {
		if printed, code := r.Run(t, slow, "destroy", "-auto-approve"); code != 0 {
			t.Errorf("destroy exited with %d:\n%s", code, printed)
		}
	})
	printed, code = r.Run(t, slow, "apply", "-auto-approve")
	if code != 0 {
		t.Fatalf("apply exited with %d:\n%s", code, printed)
	}
	providertest.ExpectText(t, printed, "Warning: LocalQueue not found", "LocalQueue "+ns+"/nobodys does not exist; the task waits until it does")
	providertest.ExpectText(t, printed, "Warning: Task "+ns+"/lonely is not admitted yet", "LocalQueue "+ns+"/nobodys does not exist, and was not created within 20s", "Its phase is Queued", "Queue:", "workload job-lonely-")
	r.ExpectNoChanges(t, slow)
}

func TestAQueueThatNeverPreemptsIsReported(t *testing.T) {
	t.Parallel()
	ns, r := namespace(t), providertest.NewTerminal(t)
	never := strings.Replace(queue(ns, 4), `within_cluster_queue = "LowerPriority"`, `within_cluster_queue = "Never"`, 1)
	printed, code := r.Run(t, asAdmin(never+queuedTask("low", "low", ns, 1, `run = "true"`)+queuedTask("high", "high", ns, 1, `run = "true"`)), "plan")
	if code != 0 {
		t.Fatalf("plan exited with %d:\n%s", code, printed)
	}
	providertest.ExpectText(t, printed, "Warning: ClusterQueue "+ns+" never preempts", `within_cluster_queue = "LowerPriority"`)
}

func TestCapacityOfNodesAndQueues(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	const data = "data.elastic_cluster_capacity.t4"
	holds := queue(ns, 4) + queuedTask("holds", "low", ns, 3, "run = \"sleep 600\"\n wait_for = \"running\"")
	steps(t, resource.TestStep{Config: asAdmin(holds)}, resource.TestStep{
		PreConfig: func() {
			eventually.True(t, "the usage of the queue is in its status", func() bool {
				q, err := queues(t).ClusterQueues().Get(t.Context(), ns, metav1.GetOptions{})
				return err == nil && len(q.Status.FlavorsUsage) == 1 && q.Status.FlavorsUsage[0].Resources[0].Total.String() == "3"
			})
		},
		Config: asAdmin(holds + fmt.Sprintf(`
data "elastic_cluster_capacity" "t4" {
  node_selector = { %q = "nvidia-tesla-t4" }
  depends_on    = [elastic_task.holds]
}

output "nodes" {
  value = [for n in data.elastic_cluster_capacity.t4.nodes : n.name]
}

output "gpus" {
  value = data.elastic_cluster_capacity.t4.total.allocatable["nvidia.com/gpu"]
}

output "quota" {
  value = one([for q in data.elastic_cluster_capacity.t4.queues : q.quotas[0] if q.name == %q])
}
`, gke, ns)),
		ConfigStateChecks: []statecheck.StateCheck{
			statecheck.ExpectKnownOutputValue("nodes", knownvalue.ListExact([]knownvalue.Check{text("t4-1")})), statecheck.ExpectKnownOutputValue("gpus", text("4")),
			statecheck.ExpectKnownOutputValueAtPath("quota", tfjsonpath.New("nominal"), text("4")),
			statecheck.ExpectKnownOutputValueAtPath("quota", tfjsonpath.New("used"), text("3")),
			statecheck.ExpectKnownOutputValueAtPath("quota", tfjsonpath.New("free"), text("1")),
			statecheck.ExpectKnownOutputValueAtPath("quota", tfjsonpath.New("resource"), text("cpu")),
			statecheck.ExpectKnownValue(data, tfjsonpath.New("as_of"), knownvalue.NotNull()),
		},
	})
}
