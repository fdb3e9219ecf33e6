package underqueue_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
)

// TestAUserHasTheVerbsThatTheGuidesCommandsNeedAndNoOther does what the guides ask a user to do, under the roles that
// they recommend. Then it takes one verb after the other away, and asks the API server about the requests that were
// made.
func TestAUserHasTheVerbsThatTheGuidesCommandsNeedAndNoOther(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	roles := providertest.ExampleRoles(t)
	maps.Copy(roles, providertest.RolesOf(t, "suspend.yaml"))
	policy := filepath.Join("..", "..", "examples", "rbac", "suspend.yaml")
	p.kubectl(cluster.Kubeconfig, "apply", "-f", policy)
	t.Cleanup(func() { p.kubectl(cluster.Kubeconfig, "delete", "-f", policy) })
	queues := providertest.NewTerminal(t)
	if printed, code := queues.Run(t, asAdmin()+p.queue("8"), "apply", "-auto-approve"); code != 0 {
		t.Fatal(printed)
	}
	t.Cleanup(func() {
		if printed, code := queues.Run(t, asAdmin()+p.queue("8"), "destroy", "-auto-approve"); code != 0 {
			t.Error(printed)
		}
	})
	masters := p.account("elastic-master", roles["elastic-master"].Rules)
	given := expand(slices.Concat(roles["elastic-user"].Rules, roles["elastic-suspender"].Rules))
	role := p.account("bob", rulesOf(given))
	requests := providertest.NewRecorder(t, cluster.Kubeconfig, p.token("bob"))

	p.doWhatTheGuidesSay(requests)

	for _, r := range given {
		of := requests.Of(p.ns, r.verb, r.group, r.resource)
		if len(of) == 0 {
			t.Errorf("elastic-user or elastic-suspender allows to %s, and no command of the guides needs it", r)
			continue
		}
		p.expectNeeded("bob", r, of[0], given, func(rules []rbacv1.PolicyRule) { p.allow(role, rules) })
	}
	t.Log("and so do the masters and the ranks, whose account has elastic-master")
	p.expectEachNeeded("elastic-master", roles["elastic-master"].Rules, func(rules []rbacv1.PolicyRule) { p.allow(masters, rules) })
}

// TestKubectlListsTheOutputInTheGuide compares the guide's table of rights with the rights of who has each role.
func TestKubectlListsTheOutputInTheGuide(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	guide, err := os.ReadFile(filepath.Join("..", "..", "templates", "guides", "least-privilege.md"))
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]map[string]string{} // verbs by role and resource
	for _, row := range regexp.MustCompile("(?m)^\\| `(elastic-[a-z-]+)` \\| ([a-z./0-9-]+(?: `[a-z-]+`)?) \\| ([a-z, -]+) \\|$").FindAllStringSubmatch(string(guide), -1) {
		if documented[row[1]] == nil {
			documented[row[1]] = map[string]string{}
		}
		documented[row[1]][row[2]] = row[3]
	}
	files, err := filepath.Glob(filepath.Join("..", "..", "examples", "rbac", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	roles := map[string]*rbacv1.ClusterRole{}
	for _, file := range files {
		maps.Copy(roles, providertest.RolesOf(t, filepath.Base(file)))
	}
	p.account("nobody", nil)
	everybody := p.canI("nobody")
	for name, role := range roles {
		p.account(name, role.Rules)
		got := map[string]string{}
		p.await("the rights of "+name, func(context.Context) (string, bool, error) {
			got = p.canI(name)
			maps.DeleteFunc(got, func(resource, verbs string) bool { return everybody[resource] == verbs })
			return fmt.Sprint(got), len(got) >= len(documented[name]), nil
		})
		if diff := cmp.Diff(documented[name], got); diff != "" {
			t.Errorf("%s: what the guide says (-) is not what kubectl lists (+): %s", name, diff)
		}
	}
	if len(documented) != len(roles) {
		t.Errorf("the guide has the rights of %d roles, and there are %d", len(documented), len(roles))
	}
}

// canI are the verbs that an account has, by resource, as kubectl lists them.
func (p place) canI(account string) map[string]string {
	p.Helper()
	listed, err := p.run(cluster.Kubeconfig, "auth", "can-i", "--list", "--no-headers", "--namespace="+p.ns, "--as=system:serviceaccount:"+p.ns+":"+account)
	if err != nil {
		p.Fatal(err, listed)
	}
	rights := map[string]string{}
	for line := range strings.Lines(listed) {
		if resource, rest, ok := strings.Cut(line, " "); ok && resource != "" {
			if names := regexp.MustCompile(`\[([a-z-]+)\] +\[`).FindStringSubmatch(rest); names != nil {
				resource += " `" + names[1] + "`"
			}
			verbs := strings.Fields(strings.Trim(rest[strings.LastIndex(rest, "["):], "[]\n "))
			rights[resource] = strings.Join(verbs, ", ")
		}
	}
	return rights
}

// doWhatTheGuidesSay makes, changes, watches, suspends and removes a job and a task, by terraform and kubectl.
func (p place) doWhatTheGuidesSay(as *providertest.Recorder) {
	p.Helper()
	user := fmt.Sprintf("provider \"elastic\" {\n  host = %q\n}\n", as.URL)
	mine := fmt.Sprintf("wait_for = \"running\"\nservice_account_name = \"elastic-master\"\n queue = { name = \"user-queue\", workload_priority_class = \"low-%[1]s\", min_workload_priority_class = \"mid-%[1]s\" }\n", p.ns)
	config := func(labels string) string {
		return user + p.job(mine+"labels = "+labels) + fmt.Sprintf(`
			resource "elastic_task" "gang" {
				name                 = "gang"
				namespace            = %q
				run                  = "true"
				num_nodes            = 2
				service_account_name = "elastic-master"
				supervisor_image        = %q
				secrets_wo           = { TOKEN = "x" }
				secrets_wo_version   = 1
				labels               = %s
			}`, p.ns, image, labels)
	}
	terminal := providertest.NewTerminal(p.T)
	for _, labels := range []string{`{}`, `{ a = "b" }`} {
		if printed, code := terminal.Run(p.T, config(labels), "apply", "-auto-approve"); code != 0 {
			p.Fatalf("apply as a user exited with %d:\n%s", code, printed)
		}
	}
	server := []string{"--server=" + as.URL, "--namespace=" + p.ns}
	p.kubectl("", append(server, "get", "pods", "-o", "wide")...)
	p.kubectl("", append(server, "describe", "job", "digits")...)
	p.kubectl("", append(server, "logs", "job/digits")...)
	// The embedded cluster forwards no port, and says so only to who may.
	if output, err := p.run("", append(server, "port-forward", "job/digits", ":8080")...); err == nil || !strings.Contains(output, "simulated nodes do not serve port-forward") {
		p.Errorf("port-forward: %v: %s", err, output)
	}
	a := acting{place: p, server: providertest.NewServer(p.T, map[string]string{"host": as.URL})} // with the role's rights
	a.await("a step", func() bool { return a.status().StepsDone > 0 })
	a.do("elastic_job_checkpoint", "digits", "written")
	a.do("elastic_job_suspend", "digits", "is suspended")
	a.do("elastic_job_resume", "digits", "is resumed")
	workloads, err := p.kueue.Workloads(p.ns).List(p.Context(), metav1.ListOptions{})
	if err != nil || len(workloads.Items) == 0 {
		p.Fatal(workloads, err)
	}
	for what, patch := range map[string]string{
		"its priority": `{"spec":{"priority":1000000}}`, "its queue": `{"spec":{"queueName":"other"}}`, "its finalizers": `{"metadata":{"finalizers":null}}`,
		"its labels": `{"metadata":{"labels":{"a":"b"}}}`, "two things": `{"spec":{"active":true,"priority":7}}`,
	} {
		output, err := p.run("", append(server, "patch", "workloads.kueue.x-k8s.io", workloads.Items[0].Name, "--type=merge", "-p", patch)...)
		if err == nil || !strings.Contains(output, "spec.active of a Workload and nothing else") {
			p.Errorf("a user changed %s of a Workload: %v: %s", what, err, output)
		}
	}
	a.await("all pods to run again", func() bool { return a.running() == 3 })
	// What somebody has deleted is made again, with a new key, and the pods that hold the old one are restarted.
	p.kubectl(cluster.Kubeconfig, "delete", "secret", "--namespace="+p.ns, "digits-credentials")
	if printed, code := terminal.Run(p.T, config(`{ a = "b" }`), "apply", "-auto-approve"); code != 0 {
		p.Fatalf("the apply that repairs a job exited with %d:\n%s", code, printed)
	}
	before := a.status()
	a.await("a step with the new key", func() bool {
		return a.status().Generation > before.Generation || a.status().StepsDone > before.StepsDone
	})
	p.destroyWhatTheGarbageCollectorLeaves(terminal, config(`{ a = "b" }`), func(r right) bool {
		return len(as.Of(p.ns, r.verb, r.group, r.resource)) > 0
	}, []heldPart{ // in the order in which they are deleted
		{right{"delete", "", "configmaps"}, "digits-status"},
		{right{"delete", "", "secrets"}, "digits-credentials"},
		{right{"delete", "coordination.k8s.io", "leases"}, "digits-master"},
		{right{"delete", "", "services"}, "digits-master"},
	})
	p.nothingLeft()
	// A job that ends; its master's client lists where it could watch alone, as with an older API server.
	ending := user + p.job(strings.Replace(mine, "running", "succeeded", 1)+`
		data     = { training = "synthetic://digits?records=100&seed=1", records_per_task = 10 }
		training = { minibatch_size = 10 }
		master   = { resources = { requests = { cpu = "1", memory = "64Mi" } }, env = { KUBE_FEATURE_WatchListClient = "false" } }`)
	for _, command := range []string{"apply", "destroy"} {
		if printed, code := terminal.Run(p.T, ending, command, "-auto-approve"); code != 0 {
			p.Errorf("%s exited with %d:\n%s", command, code, printed)
		}
	}
}

// heldPart is an object of a job, and the right to delete it.
type heldPart struct {
	right
	name string
}

// destroyWhatTheGarbageCollectorLeaves destroys while finalizers hold the job's objects, until the provider has deleted
// one of each kind by itself, as it does where the garbage collector is slow.
func (p place) destroyWhatTheGarbageCollectorLeaves(terminal *providertest.Terminal, config string, used func(right) bool, held []heldPart) {
	p.Helper()
	finalizers := func(r right, name, list string) {
		p.Helper()
		kind := strings.TrimSuffix(r.resource+"."+r.group, ".")
		p.kubectl(cluster.Kubeconfig, "patch", "--namespace="+p.ns, kind, name, "--type=merge", "-p", `{"metadata":{"finalizers":`+list+`}}`)
	}
	for _, h := range held {
		finalizers(h.right, h.name, `["example.com/slow"]`)
	}
	_, finish := terminal.Start(p.T, config, "destroy", "-auto-approve")
	for _, h := range held {
		p.await("the provider to "+h.String(), func(context.Context) (string, bool, error) {
			return "not yet", used(h.right), nil
		})
		finalizers(h.right, h.name, "null")
	}
	if printed, code := finish(); code != 0 {
		p.Errorf("destroy as a user exited with %d:\n%s", code, printed)
	}
}

// right is a verb on a kind of objects.
type right struct{ verb, group, resource string }

func (r right) String() string { return r.verb + " " + strings.TrimSuffix(r.resource+"."+r.group, ".") }

// expand are the rights of rules, each once.
func expand(rules []rbacv1.PolicyRule) []right {
	all := map[right]bool{}
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					all[right{verb, group, resource}] = true
				}
			}
		}
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b right) int { return strings.Compare(a.String(), b.String()) })
}

func rulesOf(rights []right) (rules []rbacv1.PolicyRule) {
	for _, r := range rights {
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{r.group}, Resources: []string{r.resource}, Verbs: []string{r.verb}})
	}
	return rules
}

func (p place) token(account string) string {
	p.Helper()
	token, err := p.kube.CoreV1().ServiceAccounts(p.ns).CreateToken(p.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		p.Fatal(err)
	}
	return token.Status.Token
}

// account makes a ServiceAccount with a Role in the place.
func (p place) account(name string, rules []rbacv1.PolicyRule) *rbacv1.Role {
	p.Helper()
	meta := metav1.ObjectMeta{Name: name, Namespace: p.ns}
	if _, err := p.kube.CoreV1().ServiceAccounts(p.ns).Create(p.Context(), &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{}); err != nil {
		p.Fatal(err)
	}
	role, err := p.kube.RbacV1().Roles(p.ns).Create(p.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
	if err != nil {
		p.Fatal(err)
	}
	if _, err := p.kube.RbacV1().RoleBindings(p.ns).Create(p.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: p.ns}},
	}, metav1.CreateOptions{}); err != nil {
		p.Fatal(err)
	}
	p.awaitRights(name, rules)
	return role
}

func (p place) allow(role *rbacv1.Role, rules []rbacv1.PolicyRule) {
	p.Helper()
	now := role.DeepCopy()
	now.ResourceVersion, now.Rules = "", rules
	if _, err := p.kube.RbacV1().Roles(p.ns).Update(p.Context(), now, metav1.UpdateOptions{}); err != nil {
		p.Fatal(err)
	}
}

// expectAllowed asks the API server whether an account may make a request, until it knows the role as it is now.
func (p place) expectAllowed(account, when string, of authorizationv1.ResourceAttributes, want bool) {
	p.Helper()
	p.await(fmt.Sprintf("%s, %s of %s/%s is allowed: %t", when, of.Verb, of.Resource, of.Subresource, want), func(ctx context.Context) (string, bool, error) {
		review, err := p.kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{User: p.userOf(account), ResourceAttributes: &of},
		}, metav1.CreateOptions{})
		if err != nil {
			return "", false, err
		}
		return fmt.Sprint(review.Status.Allowed), review.Status.Allowed == want, nil
	})
}

// kubectl runs a command that is to succeed, with a kubeconfig or without one.
func (p place) kubectl(kubeconfig string, arguments ...string) {
	p.Helper()
	if output, err := p.run(kubeconfig, arguments...); err != nil {
		p.Errorf("kubectl %s: %v: %s", strings.Join(arguments, " "), err, output)
	}
}

func (p place) run(kubeconfig string, arguments ...string) (string, error) {
	command := exec.CommandContext(context.WithoutCancel(p.Context()), "kubectl", arguments...)
	command.Env = append(command.Environ(), "KUBECONFIG="+kubeconfig)
	output, err := command.CombinedOutput()
	return string(output), err
}
