package provider_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
)

// TestTheRolesOfTheExampleSuffice has an account for queues and classes, and one for the tasks and jobs of a namespace.
func TestTheRolesOfTheExampleSuffice(t *testing.T) {
	roles, admin := providertest.ExampleRoles(t), adminConfig(t)
	administrator := providertest.Account(t, admin, "ada", "", providertest.Everywhere(roles["elastic-admin"].Rules))
	own := slices.Concat(roles["elastic-user"].Rules, roles["elastic-accounts"].Rules) // jobs have accounts of their own here
	user := providertest.Account(t, admin, "bob", "", providertest.In("default", own))
	queues := func(labels string) string {
		return administrator + fmt.Sprintf(`
			resource "elastic_priority_class" "p" {
				name   = "suffice"
				value  = 5
				labels = %[1]s
			}
			resource "elastic_workload_priority_class" "w" {
				name   = "suffice"
				value  = 5
				labels = %[1]s
			}
			resource "elastic_resource_flavor" "f" {
				name   = "suffice"
				labels = %[1]s
			}
			resource "elastic_cohort" "c" {
				name   = "suffice"
				labels = %[1]s
			}
			resource "elastic_topology" "t" {
				name   = "suffice"
				levels = [{ node_label = "kubernetes.io/hostname" }]
				labels = %[1]s
			}
			resource "elastic_admission_check" "a" {
				name            = "suffice"
				controller_name = "example.com/suffice"
				labels          = %[1]s
			}
			resource "elastic_cluster_queue" "q" {
				name   = "suffice"
				labels = %[1]s
			}
			resource "elastic_local_queue" "l" {
				name          = "suffice"
				namespace     = "default"
				cluster_queue = elastic_cluster_queue.q.name
				labels        = %[1]s
			}`, labels)
	}
	work := func(labels string) string {
		return user + trainingJob("suffice-job", "labels = "+labels) + fmt.Sprintf(`
			resource "elastic_task" "gang" {
				name               = "suffice-gang"
				run                = "true"
				num_nodes          = 2
				secrets_wo         = { TOKEN = "x" }
				secrets_wo_version = 1
				labels             = %s
			}`, labels)
	}
	steps(t, resource.TestStep{Config: queues(`{}`)}, resource.TestStep{Config: queues(`{ a = "b" }`)})
	steps(t, resource.TestStep{Config: work(`{}`)}, resource.TestStep{Config: work(`{ a = "b" }`)})
}

// TestTheRolesOfTheExampleSufficeForTheExpectedCluster has the accounts of the one before, and the cluster's UID.
func TestTheRolesOfTheExampleSufficeForTheExpectedCluster(t *testing.T) {
	roles, admin := providertest.ExampleRoles(t), adminConfig(t)
	namespace, err := adminClient(t).CoreV1().Namespaces().Get(t.Context(), metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	expected := fmt.Sprintf("expected_cluster_uid = %q", namespace.UID)
	administrator := providertest.Account(t, admin, "uid-ada", expected, providertest.Everywhere(roles["elastic-admin"].Rules))
	user := providertest.Account(t, admin, "uid-bob", expected,
		providertest.In("default", roles["elastic-user"].Rules), providertest.Everywhere(roles["elastic-viewer"].Rules))
	steps(t, resource.TestStep{Config: administrator + priorityClass("uid", "value = 1")})
	steps(t, resource.TestStep{Config: user + trainingJob("uid-job", `service_account_name = "default"`)})
	stranger := providertest.Account(t, admin, "uid-carl", expected, providertest.In("default", roles["elastic-user"].Rules))
	steps(t, resource.TestStep{Config: stranger + trainingJob("uid-job", ""), ExpectError: wantText("Cannot get Namespace kube-system", "--clusterrole=elastic-")})
}

// TestAPlanWithReadOnlyPermissionsNamesTheMissingOnes has an account that may read what others share, and one that may read
// nothing.
func TestAPlanWithReadOnlyPermissionsNamesTheMissingOnes(t *testing.T) {
	roles, admin, terminal := providertest.ExampleRoles(t), adminConfig(t), providertest.NewTerminal(t)
	config := trainingJob("looked-at", `
		master  = { priority_class_name = "nobodys" }
		workers = { max = 1, resources = { requests = { cpu = "1000" } } }`) + `
		resource "elastic_cluster_queue" "looked_at" {
			name            = "looked-at"
			resource_groups = [{ covered_resources = ["cpu"], flavors = [{ name = "nobodys", resources = [{ name = "cpu", nominal_quota = "1" }] }] }]
		}`
	viewer := providertest.Account(t, admin, "viewer", `forecast = "off"`, providertest.Everywhere(roles["elastic-viewer"].Rules))
	printed, code := terminal.Run(t, viewer+config, "plan")
	if code != 0 {
		t.Fatalf("plan exited with %d:\n%s", code, printed)
	}
	for _, missing := range []string{"PriorityClass nobodys not found", "ResourceFlavor nobodys not found", "A worker of looked-at fits on no node"} {
		providertest.ExpectText(t, printed, "Warning: "+missing)
	}
	stranger := providertest.Account(t, admin, "stranger", `forecast = "off"`)
	if printed, code := terminal.Run(t, stranger+config, "plan"); code != 0 || strings.Contains(printed, "Warning") {
		t.Errorf("plan exited with %d:\n%s", code, printed)
	}
}

func TestAnAccountWithReadOnlyPermissionsChangesNothing(t *testing.T) {
	roles, admin := providertest.ExampleRoles(t), adminConfig(t)
	config := trainingJob("untouched", "") + priorityClass("untouched", "value = 1") + `
		resource "elastic_task" "t" {
			name = "untouched-task"
			run  = "true"
		}
		resource "elastic_cluster_queue" "q" {
			name = "untouched"
		}`
	for account, role := range map[string]string{"viewer": "elastic-viewer", "forecaster": "elastic-forecaster"} {
		t.Run(role, func(t *testing.T) {
			terminal := providertest.NewTerminal(t)
			looks := providertest.Account(t, admin, account, `forecast = "off"`, providertest.Everywhere(roles[role].Rules))
			printed, code := terminal.Run(t, looks+config, "apply", "-auto-approve")
			if code != 1 || strings.Contains(printed, "Creation complete") {
				t.Errorf("apply exited with %d:\n%s", code, printed)
			}
			const us = "system:serviceaccount:default:"
			for what, right := range map[string]string{
				"Job default/untouched": "jobs.batch in namespace default", "Job default/untouched-task": "jobs.batch in namespace default",
				"PriorityClass untouched": "priorityclasses.scheduling.k8s.io in the whole cluster", "ClusterQueue untouched": "clusterqueues.kueue.x-k8s.io in the whole cluster",
			} {
				providertest.ExpectText(t, printed, "Error: Cannot create "+what+" ", us+account+`" may not create `+right)
			}
		})
	}
}
