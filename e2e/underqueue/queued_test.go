package underqueue_test

import (
	"context"
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
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertesting"
	kueueclient "github.com/elastic-training/terraform-provider-elastic/internal/kueue/client"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainingjob"
)

const job = "elastic_training_job.test"

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
		{"model", `{ file = file("ROOT/internal/trainer/local/testdata/reference_model.py") }`},
		{"data", `{ training = "synthetic://digits?records=40000&seed=1", records_per_task = 100 }`},
		{"training", `{ minibatch_size = 10, grads_to_wait = 2, epochs = 100 }`},
		{"master", "{ " + small + " }"},
		{"workers", "{ max = 2, " + small + " }"},
		{"queue", `{
    name                 = elastic_local_queue.test.name
    priority_class       = elastic_workload_priority_class.low.name
    floor_priority_class = elastic_workload_priority_class.mid.name
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
	resource.Test(p.T, resource.TestCase{IsUnitTest: true, ProtoV6ProviderFactories: providertesting.Factories(p.T, nil), Steps: steps})
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
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.Context()), time.Minute)
	defer cancel()
	for {
		seen, done, err := ok(ctx)
		if done {
			return
		}
		select {
		case <-ctx.Done():
			p.Fatalf("%s: not within a minute; last seen: %s %v", what, seen, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// awaitGated waits until the pods of master and floor wait behind their gates.
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

func TestAJobWithoutRoomIsQueuedAndPlansAsNoChangeAndGoesWhenItIsDestroyed(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	queued := asAdmin() + p.queue("1") + p.job("")
	larger := asAdmin() + p.queue("1") + p.job(`workers = { max = 3, resources = { requests = { cpu = "1", memory = "64Mi" } } }`)
	higher := asAdmin() + p.queue("1") + p.job(`workers = { min = 2, max = 3, resources = { requests = { cpu = "1", memory = "64Mi" } } }`)
	p.steps(
		resource.TestStep{Config: queued, ConfigPlanChecks: planned(plancheck.ResourceActionCreate)},
		resource.TestStep{PreConfig: p.awaitGated, RefreshState: true},
		resource.TestStep{Config: queued, ConfigPlanChecks: planned(plancheck.ResourceActionNoop), ConfigStateChecks: phaseIs(trainingjob.PhaseQueued)},
		resource.TestStep{
			ResourceName: job, ImportState: true, ImportStateId: p.ns + "/digits", ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name",
			ImportStateVerifyIgnore: []string{"workers.resources", "master.resources"}, // the user's spelling
		},
		resource.TestStep{Config: larger, ConfigPlanChecks: planned(plancheck.ResourceActionUpdate)},
		resource.TestStep{Config: higher, ConfigPlanChecks: planned(plancheck.ResourceActionDestroyBeforeCreate)},
		resource.TestStep{PreConfig: func() {
			p.await("three gated pods", func(ctx context.Context) (string, bool, error) {
				pods, err := p.kube.CoreV1().Pods(p.ns).List(ctx, metav1.ListOptions{})
				if err != nil {
					return "", false, err
				}
				return fmt.Sprint(len(pods.Items)), len(pods.Items) == 3, nil
			})
		}, Config: higher, ConfigPlanChecks: planned(plancheck.ResourceActionNoop)},
	)
	p.nothingLeft()
}

func TestAJobThatTrainsInItsQueueGoesWhenItIsDestroyed(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	config := asAdmin() + p.queue("3") + p.job("wait_for = \"running\"\n timeouts = { delete = \"60s\" }")
	p.steps(resource.TestStep{Config: config, ConfigPlanChecks: planned(plancheck.ResourceActionCreate), ConfigStateChecks: phaseIs(trainingjob.PhaseRunning)})
	p.nothingLeft()
}

func TestAWaitForARunSaysWhyTheQueueDoesNotLetItRun(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	terminal := providertesting.NewTerminal(t)
	config := asAdmin() + p.queue("1") + p.job("wait_for = \"running\"\n timeouts = { create = \"10s\" }")
	printed, code := terminal.Run(t, config, "apply", "-auto-approve")
	text := strings.Join(strings.Fields(strings.ReplaceAll(printed, "│", " ")), " ")
	for _, words := range []string{
		"is not running yet", "Its phase is Queued", "workload digits-floor-", "in queue user-queue: Pending", "insufficient quota for cpu",
		"is queued: Kueue has not admitted it to queue user-queue yet",
	} {
		if code != 0 || !strings.Contains(text, words) {
			t.Errorf("exit code %d, and %q is missing in:\n%s", code, words, printed)
		}
	}
	terminal.ExpectNoChanges(t, config)
	if printed, code := terminal.Run(t, config, "destroy", "-auto-approve"); code != 0 {
		t.Errorf("destroy exited with %d:\n%s", code, printed)
	}
	p.nothingLeft()
}

func TestAQueueInWhichTheJobCouldNeverRunIsRefused(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	queue := p.queue("3")
	byDefault := queue + fmt.Sprintf(`
resource "elastic_local_queue" "default" {
  name          = "default"
  namespace     = %q
  cluster_queue = elastic_cluster_queue.test.name
}
`, p.ns)
	says := func(words ...string) *regexp.Regexp {
		var parts []string
		for _, w := range words {
			parts = append(parts, strings.ReplaceAll(regexp.QuoteMeta(w), " ", `[\s│]+`))
		}
		return regexp.MustCompile(`(?s)` + strings.Join(parts, `.*`))
	}
	p.steps(
		resource.TestStep{Config: asAdmin() + queue},
		resource.TestStep{
			Config:      asAdmin() + queue + p.job(`queue = { name = "user-queue", floor_priority_class = "nobody" }`),
			ExpectError: says("There is no such workload priority class", `WorkloadPriorityClass "nobody" does not exist`),
		},
		resource.TestStep{
			Config:      asAdmin() + queue + p.job(`queue = { name = "default" }`),
			ExpectError: says("queue.name is", "would queue the master and the floor apart from each other"),
		},
		resource.TestStep{Config: asAdmin() + byDefault},
		resource.TestStep{
			Config:      asAdmin() + byDefault + p.job("depends_on = [elastic_local_queue.default]"),
			ExpectError: says("The namespace's default queue is in the way", "each by itself"),
		},
	)
	p.nothingLeft()
}

func TestAPlanWarnsOfWhatTheJobWillNotFind(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	terminal := providertesting.NewTerminal(t)
	inDefault := p.queue("3") + fmt.Sprintf(`
resource "elastic_local_queue" "default" {
  name          = "default"
  namespace     = %q
  cluster_queue = elastic_cluster_queue.test.name
}
resource "elastic_priority_class" "low" {
  name  = "pods-low-%[1]s"
  value = 1
}
resource "elastic_priority_class" "high" {
  name  = "pods-high-%[1]s"
  value = 2
}
`, p.ns)
	small := `resources = { requests = { cpu = "1", memory = "64Mi" } }`
	for name, c := range map[string]struct {
		lines string
		says  []string
	}{
		"a default queue and no queue": {
			"queue = null\n depends_on = [elastic_local_queue.default]",
			[]string{"The job will be queued", `has a LocalQueue named "default"`, "queue of another name and attribute queue"},
		},
		"a default queue beside the job's own": {
			"depends_on = [elastic_local_queue.default]", []string{"The namespace's default queue is in the way", "the job cannot be created"},
		},
		"a queue and classes that nobody makes": {
			`queue = { name = "nowhere", priority_class = "nobody", floor_priority_class = "nothing" }`,
			[]string{"LocalQueue nowhere is not there", "Until it exists the job waits", "WorkloadPriorityClass nobody is not there", "WorkloadPriorityClass nothing is not there", "elastic_workload_priority_class.NAME.name"},
		},
		"a floor below the rest": {
			`queue = {
    name = elastic_local_queue.test.name
    priority_class = elastic_workload_priority_class.mid.name
    floor_priority_class = elastic_workload_priority_class.low.name
  }`, []string{"The floor is not above the rest", "has value 10"},
		},
		"a floor like the rest": {`queue = { name = elastic_local_queue.test.name, priority_class = "nobody" }`, []string{"queue.floor_priority_class is not set"}},
		"a master below its workers": {
			fmt.Sprintf("master = { priority_class_name = elastic_priority_class.low.name, %[1]s }\n workers = { max = 2, priority_class_name = elastic_priority_class.high.name, %[1]s }", small),
			[]string{"The master is less important than its workers"},
		},
		"a worker larger than every node": {
			`workers = { max = 2, resources = { requests = { cpu = "64", memory = "64Mi" } } }`, []string{"A worker of digits fits on no node", "None of the cluster's 2 nodes could run it"},
		},
	} {
		t.Run(name+" is warned of", func(t *testing.T) {
			printed, code := terminal.Run(t, asAdmin()+inDefault+p.job(c.lines), "plan")
			text := strings.Join(strings.Fields(strings.ReplaceAll(printed, "│", " ")), " ")
			for _, words := range c.says {
				if code != 0 || !strings.Contains(text, words) {
					t.Errorf("exit code %d, and %q is missing in:\n%s", code, words, printed)
				}
			}
		})
	}
	t.Run("nothing is warned of in a plan as it should be", func(t *testing.T) {
		silent := strings.Replace(asAdmin(), "{\n", "{\n  forecast = \"off\"\n", 1)
		printed, code := terminal.Run(t, silent+p.queue("3")+p.job(""), "plan")
		if code != 0 || strings.Contains(printed, "Warning:") {
			t.Errorf("exit code %d:\n%s", code, printed)
		}
	})
}

// TestWhoMayNotReadOrDeleteWorkloadsCanStillDestroyTheJob has a user with the rights that Kubernetes' own role "edit" gives,
// and none for Kueue's objects.
func TestWhoMayNotReadOrDeleteWorkloadsCanStillDestroyTheJob(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	meta := metav1.ObjectMeta{Name: "limited", Namespace: p.ns}
	if _, err := p.kube.CoreV1().ServiceAccounts(p.ns).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	bind := func(name, kind, role string) {
		t.Helper()
		_, err := p.kube.RbacV1().RoleBindings(p.ns).Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "limited", Namespace: p.ns}},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	// The job's own Role and Lease are more than "edit" allows to grant.
	bind("limited", "ClusterRole", "admin")
	_, err := p.kube.RbacV1().Roles(p.ns).Create(t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "leases"},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "create", "update", "patch", "delete"}},
			{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	bind("leases", "Role", "leases")
	token, err := p.kube.CoreV1().ServiceAccounts(p.ns).CreateToken(t.Context(), "limited", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	admin, err := cluster.Config()
	if err != nil {
		t.Fatal(err)
	}
	ca := string(admin.CAData)
	limited := fmt.Sprintf("provider \"elastic\" {\n host = %q\n token = %q\n cluster_ca_certificate = %q\n}\n", admin.Host, token.Status.Token, ca)
	mine := fmt.Sprintf(`queue = { name = "user-queue", priority_class = "low-%[1]s", floor_priority_class = "mid-%[1]s" }`, p.ns)

	administrator := providertesting.NewTerminal(t)
	if printed, code := administrator.Run(t, asAdmin()+p.queue("3"), "apply", "-auto-approve"); code != 0 {
		t.Fatal(printed)
	}
	p.steps(resource.TestStep{
		Config: limited + p.job(mine+"\n wait_for = \"running\"\n timeouts = { delete = \"90s\" }"), ConfigPlanChecks: planned(plancheck.ResourceActionCreate),
		ConfigStateChecks: phaseIs(trainingjob.PhaseRunning),
	})
	p.nothingLeft()
	if printed, code := administrator.Run(t, asAdmin()+p.queue("3"), "destroy", "-auto-approve"); code != 0 {
		t.Error(printed)
	}
}
