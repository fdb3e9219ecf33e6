package underqueue_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/task"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

// TestAnAdministratorHasTheVerbsThatQueuesAndClassesNeedAndNoOther makes, changes, searches and removes an object of
// each kind under elastic-admin, and waits for what others have to do first.
func TestAnAdministratorHasTheVerbsThatQueuesAndClassesNeedAndNoOther(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	ada := p.clusterAccount("ada", "elastic-admin")
	config := func(labels string) string {
		return p.connection("ada", fmt.Sprintf("expected_cluster_uid = %q", p.clusterUID())) + strings.ReplaceAll(fmt.Sprintf(`
			resource "elastic_priority_class" "p" {
				name   = "NAME"
				value  = 5
				labels = %[1]s
			}
			resource "elastic_workload_priority_class" "w" {
				name   = "NAME"
				value  = 5
				labels = %[1]s
			}
			resource "elastic_resource_flavor" "f" {
				name   = "NAME"
				labels = %[1]s
			}
			resource "elastic_cohort" "c" {
				name   = "NAME"
				labels = %[1]s
			}
			resource "elastic_topology" "t" {
				name   = "NAME"
				levels = [{ node_label = "kubernetes.io/hostname" }]
				labels = %[1]s
			}
			resource "elastic_admission_check" "a" {
				name            = "NAME"
				controller_name = "example.com/NAME"
				labels          = %[1]s
				wait_for        = "active"
				timeouts        = { create = "5s", update = "5s" } # nobody runs that controller
			}
			resource "elastic_cluster_queue" "q" {
				name     = "NAME"
				labels   = %[1]s
				wait_for = "active"
				timeouts = { create = "5s", update = "5s", delete = "5s" }
				# Its flavor is missing: it never becomes active, so that the wait always needs its watch.
				resource_groups = [{ covered_resources = ["cpu"], flavors = [{ name = "nobodys", resources = [{ name = "cpu", nominal_quota = "1" }] }] }]
			}
			resource "elastic_local_queue" "l" {
				name          = "NAME"
				namespace     = "NAME"
				cluster_queue = elastic_cluster_queue.q.name
				labels        = %[1]s
				wait_for      = "active"
				timeouts      = { create = "5s", update = "5s" }
			}`, labels), "NAME", p.ns)
	}
	terminal := providertest.NewTerminal(t)
	for _, labels := range []string{`{}`, `{ a = "b" }`} {
		if printed, code := terminal.Run(t, config(labels), "apply", "-auto-approve"); code != 0 {
			t.Fatalf("apply exited with %d:\n%s", code, printed)
		}
	}
	p.searches("ada")
	p.destroyWhileHeld(terminal, config(`{ a = "b" }`))
	p.expectEachNeeded("ada", ada.Rules, func(rules []rbacv1.PolicyRule) { p.allowEverywhere(ada, rules) })
}

// TestWhoMayLookHasTheVerbsThatPlansNeedAndNoOther plans under elastic-viewer and under elastic-forecaster.
func TestWhoMayLookHasTheVerbsThatPlansNeedAndNoOther(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	viewer, forecaster := p.clusterAccount("viewer", "elastic-viewer"), p.clusterAccount("forecaster", "elastic-forecaster")
	work := p.job(`master = { priority_class_name = "nobodys" }
		queue = { name = "nobodys", workload_priority_class = "nobodys" }`) + `
		data "elastic_cluster_capacity" "all" {}
		data "elastic_workloads" "all" {}
		resource "elastic_cluster_queue" "q" {
			name            = "viewed"
			resource_groups = [{ covered_resources = ["cpu"], flavors = [{ name = "nobodys", resources = [{ name = "cpu", nominal_quota = "1" }] }] }]
		}
		resource "elastic_cohort" "c" {
			name        = "viewed"
			parent_name = "nobodys"
		}
		resource "elastic_local_queue" "l" {
			name          = "viewed"
			namespace     = "default"
			cluster_queue = "nobodys"
		}`
	for account, more := range map[string]string{
		"viewer": fmt.Sprintf("forecast = \"off\"\n expected_cluster_uid = %q", p.clusterUID()), "forecaster": "",
	} {
		if printed, code := providertest.NewTerminal(t).Run(t, p.connection(account, more)+work, "plan"); code != 0 {
			t.Errorf("plan as %s exited with %d:\n%s", account, code, printed)
		}
	}
	// The guides have these commands, too.
	for _, command := range []string{
		"get clusterqueues -o wide", "describe clusterqueue NAME", "describe workload NAME", "describe node NAME", "describe pod NAME",
	} {
		p.kubectlAs("viewer", strings.Fields(command)...)
	}
	p.expectEachNeeded("viewer", viewer.Rules, func(rules []rbacv1.PolicyRule) { p.allowEverywhere(viewer, rules) })
	p.expectEachNeeded("forecaster", forecaster.Rules, func(rules []rbacv1.PolicyRule) { p.allowEverywhere(forecaster, rules) })
}

// TestWhoseJobsHaveAccountsHasTheVerbsForThatAndNoOther makes a job and a task with accounts of their own, under
// elastic-user and elastic-accounts. The API server lets nobody make a Role that allows more than they may themselves.
func TestWhoseJobsHaveAccountsHasTheVerbsForThatAndNoOther(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	roles := providertest.ExampleRoles(t)
	p.applies(asAdmin() + p.queue("8"))
	given := expand(slices.Concat(roles["elastic-user"].Rules, roles["elastic-accounts"].Rules))
	role := p.account("carol", rulesOf(given))
	mine := fmt.Sprintf("queue = { name = \"user-queue\", workload_priority_class = \"low-%[1]s\", min_workload_priority_class = \"mid-%[1]s\" }\n", p.ns)
	config := func(labels string) string {
		return p.connection("carol", "") + p.job(mine+"labels = "+labels) + fmt.Sprintf(`
			resource "elastic_task" "gang" {
				name             = "gang"
				namespace        = %q
				run              = "true"
				num_nodes        = 2
				supervisor_image = %q
				labels           = %s
			}`, p.ns, image, labels)
	}
	terminal := providertest.NewTerminal(t)
	for _, labels := range []string{`{}`, `{ a = "b" }`} {
		if printed, code := terminal.Run(t, config(labels), "apply", "-auto-approve"); code != 0 {
			t.Fatalf("apply exited with %d:\n%s", code, printed)
		}
	}
	makesRoles := func() error {
		rules := slices.Concat(trainingjob.MasterRules("digits", true), task.GangRules("gang"))
		_, err := p.as("carol").RbacV1().Roles(p.ns).Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "probe"}, Rules: rules},
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	if err := makesRoles(); err != nil {
		t.Fatal(err)
	}
	p.destroyWhatTheGarbageCollectorLeaves(terminal, config(`{ a = "b" }`), func(r right) bool {
		_, used := p.usedBy("carol")[r]
		return used
	}, []heldPart{
		{right{"delete", "", "serviceaccounts"}, "digits"},
		{right{"delete", rbacv1.GroupName, "roles"}, "digits"},
		{right{"delete", rbacv1.GroupName, "rolebindings"}, "digits"},
	})
	used := p.usedBy("carol")
	for _, r := range expand(roles["elastic-accounts"].Rules) {
		if of, is := used[r]; is {
			p.expectNeeded("carol", r, of, given, func(rules []rbacv1.PolicyRule) { p.allow(role, rules) })
			continue
		}
		p.allow(role, rulesOf(slices.DeleteFunc(slices.Clone(given), func(other right) bool { return other == r })))
		of := authorizationv1.ResourceAttributes{Namespace: p.ns, Verb: r.verb, Group: r.group, Resource: r.resource}
		p.expectAllowed("carol", "without the right to "+r.String(), of, false)
		if err := makesRoles(); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "attempting to grant RBAC permissions not currently held") {
			t.Errorf("elastic-accounts allows to %s, and neither a request nor a Role needs it: %v", r, err)
		}
		p.allow(role, rulesOf(given))
		p.expectAllowed("carol", "with the right to "+r.String(), of, true)
	}
}

// destroyWhileHeld destroys the administrator's objects while a finalizer holds the queue, which stays and says what uses
// it, and then without it.
func (p place) destroyWhileHeld(terminal *providertest.Terminal, config string) {
	p.Helper()
	finalizers := func(list string) {
		p.kubectl(cluster.Kubeconfig, "patch", "clusterqueue", p.ns, "--type=merge", "-p", `{"metadata":{"finalizers":`+list+`}}`)
	}
	finalizers(`["example.com/held"]`)
	if printed, code := terminal.Run(p.T, config, "destroy", "-auto-approve"); code == 0 || !strings.Contains(printed, "is not deleted yet") {
		p.Errorf("destroy exited with %d:\n%s", code, printed)
	}
	finalizers("null")
	if printed, code := terminal.Run(p.T, config, "destroy", "-auto-approve"); code != 0 {
		p.Fatalf("destroy exited with %d:\n%s", code, printed)
	}
}

// applies applies configurations one after the other, and destroys the last one when the test ends.
func (p place) applies(configs ...string) {
	p.Helper()
	terminal := providertest.NewTerminal(p.T)
	for _, config := range configs {
		if printed, code := terminal.Run(p.T, config, "apply", "-auto-approve"); code != 0 {
			p.Fatalf("apply exited with %d:\n%s", code, printed)
		}
	}
	p.Cleanup(func() {
		if printed, code := terminal.Run(p.T, configs[len(configs)-1], "destroy", "-auto-approve"); code != 0 {
			p.Errorf("destroy exited with %d:\n%s", code, printed)
		}
	})
}

// searches searches for objects of every kind that elastic-admin manages, as `terraform query` does.
func (p place) searches(account string) {
	p.Helper()
	config, err := cluster.Config()
	if err != nil {
		p.Fatal(err)
	}
	server := providertest.NewServer(p.T, map[string]string{"host": config.Host, "token": p.token(account), "cluster_ca_certificate": string(config.CAData)})
	for kind, schema := range server.Schemas.ListResourceSchemas {
		if kind == "elastic_task" || kind == "elastic_training_job" {
			continue
		}
		stream, err := server.ListResource(p.Context(), &tfprotov6.ListResourceRequest{TypeName: kind, Config: providertest.Encoded(p.T, schema.ValueType(), nil)})
		if err != nil {
			p.Fatal(err)
		}
		for result := range stream.Results {
			providertest.NoErrors(p.T, nil, result.Diagnostics)
		}
	}
}

// usedBy are the rights that the requests of an account have needed, each with one of them, as the API server's audit
// log has them.
func (p place) usedBy(account string) map[right]authorizationv1.ResourceAttributes {
	p.Helper()
	file, err := os.Open(cluster.AuditLog())
	if err != nil {
		p.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	used := map[right]authorizationv1.ResourceAttributes{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event struct {
			Verb      string
			User      struct{ Username string }
			ObjectRef struct{ Resource, Namespace, Name, APIGroup, APIVersion, Subresource string }
		}
		if json.Unmarshal(lines.Bytes(), &event) != nil || event.User.Username != p.userOf(account) || event.ObjectRef.Resource == "" {
			continue // the last line may be half of one
		}
		o := event.ObjectRef
		name := strings.TrimSuffix(o.Resource+"/"+o.Subresource, "/")
		used[right{event.Verb, o.APIGroup, name}] = authorizationv1.ResourceAttributes{
			Namespace: o.Namespace, Verb: event.Verb, Group: o.APIGroup, Version: o.APIVersion, Resource: o.Resource, Subresource: o.Subresource, Name: o.Name,
		}
	}
	if lines.Err() != nil {
		p.Fatal(lines.Err())
	}
	return used
}

// expectEachNeeded checks of every right in the rules of an account's role that the account has used it, and could not
// without it.
func (p place) expectEachNeeded(account string, rules []rbacv1.PolicyRule, allow func([]rbacv1.PolicyRule)) {
	p.Helper()
	used, given := p.usedBy(account), expand(rules)
	for _, r := range given {
		if of, is := used[r]; is {
			p.expectNeeded(account, r, of, given, allow)
		} else {
			p.Errorf("the role of %s allows to %s, and nothing needs it", account, r)
		}
	}
}

// expectNeeded takes one right away, and gives it back.
func (p place) expectNeeded(account string, r right, of authorizationv1.ResourceAttributes, given []right, allow func([]rbacv1.PolicyRule)) {
	p.Helper()
	allow(rulesOf(slices.DeleteFunc(slices.Clone(given), func(other right) bool { return other == r })))
	p.expectAllowed(account, "without the right to "+r.String(), of, false)
	allow(rulesOf(given))
	p.expectAllowed(account, "with the right to "+r.String(), of, true)
}

func (p place) userOf(account string) string { return "system:serviceaccount:" + p.ns + ":" + account }

func (p place) connection(account, more string) string {
	p.Helper()
	config, err := cluster.Config()
	if err != nil {
		p.Fatal(err)
	}
	return providertest.Connection(config, p.token(account), more)
}

func (p place) as(account string) kubernetes.Interface {
	p.Helper()
	config, err := cluster.Config()
	if err != nil {
		p.Fatal(err)
	}
	config = rest.AnonymousClientConfig(config)
	config.BearerToken = p.token(account)
	return kubernetes.NewForConfigOrDie(config)
}

// kubectlAs runs a command under an account, about objects that need not be there.
func (p place) kubectlAs(account string, arguments ...string) {
	p.Helper()
	config, err := cluster.Config()
	if err != nil {
		p.Fatal(err)
	}
	connection := []string{"--server=" + config.Host, "--token=" + p.token(account), "--insecure-skip-tls-verify", "--namespace=" + p.ns}
	if output, err := p.run("", append(connection, arguments...)...); err != nil && !strings.Contains(output, "NotFound") {
		p.Errorf("kubectl %s: %v: %s", strings.Join(arguments, " "), err, output)
	}
}

func (p place) clusterUID() string {
	p.Helper()
	system, err := p.kube.CoreV1().Namespaces().Get(p.Context(), metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		p.Fatal(err)
	}
	return string(system.UID)
}

// clusterAccount makes a ServiceAccount in the place that has a role of the example in the whole cluster.
func (p place) clusterAccount(name, role string) *rbacv1.ClusterRole {
	p.Helper()
	p.account(name, nil)
	meta := metav1.ObjectMeta{Name: p.ns + "-" + name}
	made, err := p.kube.RbacV1().ClusterRoles().Create(p.Context(),
		&rbacv1.ClusterRole{ObjectMeta: meta, Rules: providertest.ExampleRoles(p.T)[role].Rules}, metav1.CreateOptions{})
	if err != nil {
		p.Fatal(err)
	}
	if _, err := p.kube.RbacV1().ClusterRoleBindings().Create(p.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: p.ns}},
	}, metav1.CreateOptions{}); err != nil {
		p.Fatal(err)
	}
	p.awaitRights(name, made.Rules)
	return made
}

// awaitRights waits until the API server knows of an account's role.
func (p place) awaitRights(account string, rules []rbacv1.PolicyRule) {
	p.Helper()
	for _, rule := range rules {
		if len(rule.ResourceNames) == 0 {
			p.expectAllowed(account, "at first", authorizationv1.ResourceAttributes{
				Namespace: p.ns, Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: rule.Resources[0],
			}, true)
			return
		}
	}
}

func (p place) allowEverywhere(role *rbacv1.ClusterRole, rules []rbacv1.PolicyRule) {
	p.Helper()
	now := role.DeepCopy()
	now.ResourceVersion, now.Rules = "", rules
	if _, err := p.kube.RbacV1().ClusterRoles().Update(p.Context(), now, metav1.UpdateOptions{}); err != nil {
		p.Fatal(err)
	}
}
