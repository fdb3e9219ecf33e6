package provider_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// exampleRoles are the ClusterRoles of examples/rbac, by name.
func exampleRoles(t *testing.T) map[string]*rbacv1.ClusterRole {
	t.Helper()
	file, err := os.Open(filepath.Join(examples, "rbac", "rbac.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	roles, decoder := map[string]*rbacv1.ClusterRole{}, yaml.NewYAMLOrJSONDecoder(file, 4096)
	for {
		role := &rbacv1.ClusterRole{}
		switch err := decoder.Decode(role); {
		case errors.Is(err, io.EOF):
			return roles
		case err != nil:
			t.Fatal(err)
		}
		roles[role.Name] = role
	}
}

// TestTheRolesOfTheExampleSuffice has an account for queues and classes, and one for the tasks and jobs of a namespace.
func TestTheRolesOfTheExampleSuffice(t *testing.T) {
	kube, roles, admin := adminClient(t), exampleRoles(t), adminConfig(t)
	// as makes an account with one of the roles, and is the provider's configuration for it.
	as := func(role string, inWholeCluster bool) string {
		given, ok := roles[role]
		if !ok {
			t.Fatalf("there is no ClusterRole %s", role)
		}
		meta := metav1.ObjectMeta{Name: role, Namespace: "default"}
		_, errRole := kube.RbacV1().ClusterRoles().Create(t.Context(), given, metav1.CreateOptions{})
		_, errAccount := kube.CoreV1().ServiceAccounts("default").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{})
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
		subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: role, Namespace: "default"}}
		var errBinding error
		if inWholeCluster {
			_, errBinding = kube.RbacV1().ClusterRoleBindings().Create(t.Context(),
				&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role}, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{})
		} else {
			_, errBinding = kube.RbacV1().RoleBindings("default").Create(t.Context(),
				&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{})
		}
		t.Cleanup(func() {
			ctx := cleanupContext(t)
			unbind := func() error { return kube.RbacV1().RoleBindings("default").Delete(ctx, role, metav1.DeleteOptions{}) }
			if inWholeCluster {
				unbind = func() error { return kube.RbacV1().ClusterRoleBindings().Delete(ctx, role, metav1.DeleteOptions{}) }
			}
			if err := errors.Join(unbind(), kube.CoreV1().ServiceAccounts("default").Delete(ctx, role, metav1.DeleteOptions{}),
				kube.RbacV1().ClusterRoles().Delete(ctx, role, metav1.DeleteOptions{})); err != nil {
				t.Error(err)
			}
		})
		token, errToken := kube.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), role, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		if err := errors.Join(errRole, errAccount, errBinding, errToken); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("provider \"elastic\" {\n host = %q\n token = %q\n cluster_ca_certificate = %q\n}\n", admin.Host, token.Status.Token, admin.CAData)
	}

	administrator, user := as("elastic-admin", true), as("elastic-user", false)
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
