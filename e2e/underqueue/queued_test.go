package underqueue_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

const job = "elastic_training_job.test"

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

func TestAWaitForARunReportsWhyTheQueueDoesNotAdmitIt(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	terminal := providertest.NewTerminal(t)
	config := asAdmin() + p.queue("1") + p.job("wait_for = \"running\"\n timeouts = { create = \"10s\" }")
	printed, code := terminal.Run(t, config, "apply", "-auto-approve")
	text := strings.Join(strings.Fields(strings.ReplaceAll(printed, "│", " ")), " ")
	for _, words := range []string{
		"is not running yet", "Its phase is Queued", "workload digits-min-", "in queue user-queue: Pending", "insufficient quota for cpu",
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
	wantText := func(words ...string) *regexp.Regexp {
		var parts []string
		for _, w := range words {
			parts = append(parts, strings.ReplaceAll(regexp.QuoteMeta(w), " ", `[\s│]+`))
		}
		return regexp.MustCompile(`(?s)` + strings.Join(parts, `.*`))
	}
	p.steps(
		resource.TestStep{Config: asAdmin() + queue},
		resource.TestStep{
			Config:      asAdmin() + queue + p.job(`queue = { name = "user-queue", min_workload_priority_class = "nobody" }`),
			ExpectError: wantText("WorkloadPriorityClass not found", `WorkloadPriorityClass "nobody" does not exist`),
		},
		resource.TestStep{
			Config:      asAdmin() + queue + p.job(`queue = { name = "default" }`),
			ExpectError: wantText("queue.name is", "would queue the master and the minimum workers apart from each other"),
		},
		resource.TestStep{Config: asAdmin() + byDefault},
		resource.TestStep{
			Config:      asAdmin() + byDefault + p.job("depends_on = [elastic_local_queue.default]"),
			ExpectError: wantText("The namespace has a default queue", "separately"),
		},
	)
	p.nothingLeft()
}

func TestAPlanWarnsOfWhatTheJobWillNotFind(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	terminal := providertest.NewTerminal(t)
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
		lines    string
		wantText []string
	}{
		"a default queue and no queue": {
			"queue = null\n depends_on = [elastic_local_queue.default]",
			[]string{"Job will be queued by default", `has a LocalQueue named "default"`, "set queue to a LocalQueue with another name"},
		},
		"a default queue beside the job's own": {
			"depends_on = [elastic_local_queue.default]", []string{"The namespace has a default queue", "the job cannot be created"},
		},
		"a queue and classes that nobody makes": {
			`queue = { name = "nowhere", workload_priority_class = "nobody", min_workload_priority_class = "nothing" }`,
			[]string{"LocalQueue nowhere not found", "Until it exists, the job waits", "WorkloadPriorityClass nobody not found", "WorkloadPriorityClass nothing not found", "elastic_workload_priority_class.NAME.name"},
		},
		"a minimum below the other workers": {
			`queue = {
    name = elastic_local_queue.test.name
    workload_priority_class = elastic_workload_priority_class.mid.name
    min_workload_priority_class = elastic_workload_priority_class.low.name
  }`, []string{"The minimum workers have no higher priority", "has value 10"},
		},
		"a minimum like the other workers": {`queue = { name = elastic_local_queue.test.name, workload_priority_class = "nobody" }`, []string{"queue.min_workload_priority_class is not set"}},
		"a master below its workers": {
			fmt.Sprintf("master = { priority_class_name = elastic_priority_class.low.name, %[1]s }\n workers = { max = 2, priority_class_name = elastic_priority_class.high.name, %[1]s }", small),
			[]string{"The master has no higher priority than its workers"},
		},
		"a worker larger than every node": {
			`workers = { max = 2, resources = { requests = { cpu = "64", memory = "64Mi" } } }`, []string{"A worker of digits fits on no node", "It would not fit on any of the cluster's 2 nodes"},
		},
	} {
		t.Run(name+" is warned of", func(t *testing.T) {
			printed, code := terminal.Run(t, asAdmin()+inDefault+p.job(c.lines), "plan")
			text := strings.Join(strings.Fields(strings.ReplaceAll(printed, "│", " ")), " ")
			for _, words := range c.wantText {
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

// TestWhoMayNotReadOrDeleteWorkloadsCanStillDestroyTheJob has a user with the rights that Kubernetes' own role "edit"
// gives, and none for Kueue's objects.
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
	mine := fmt.Sprintf(`queue = { name = "user-queue", workload_priority_class = "low-%[1]s", min_workload_priority_class = "mid-%[1]s" }`, p.ns)

	administrator := providertest.NewTerminal(t)
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
