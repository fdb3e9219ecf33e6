package providertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/elastic-training/terraform-provider-elastic/examples/rbac"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
)

// ExampleRoles are the ClusterRoles of examples/rbac/rbac.yaml, by name.
func ExampleRoles(t *testing.T) map[string]*rbacv1.ClusterRole {
	t.Helper()
	return RolesOf(t, "rbac.yaml")
}

// RolesOf are the ClusterRoles of a file of examples/rbac, by name.
func RolesOf(t *testing.T, name string) map[string]*rbacv1.ClusterRole {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "examples", "rbac", name))
	if err != nil {
		t.Fatal(err)
	}
	all, err := rbac.ClusterRoles(string(text))
	if err != nil {
		t.Fatal(err)
	}
	roles := map[string]*rbacv1.ClusterRole{}
	for i := range all {
		roles[all[i].Name] = &all[i]
	}
	return roles
}

// Account makes a ServiceAccount as Token does, and returns the provider's configuration for it, with more lines in it.
func Account(t *testing.T, admin *rest.Config, name, more string, gives ...Gives) string {
	t.Helper()
	return Connection(admin, Token(t, admin, name, gives...), more)
}

// Token makes a ServiceAccount in namespace default that is there until the test ends, and returns a token of it. It has
// the rights of the roles that are given to it.
func Token(t *testing.T, admin *rest.Config, name string, gives ...Gives) string {
	t.Helper()
	kube, err := kubernetes.NewForConfig(admin)
	if err != nil {
		t.Fatal(err)
	}
	accounts := kube.CoreV1().ServiceAccounts(metav1.NamespaceDefault)
	if _, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	cleanUp(t, func(ctx context.Context) error { return accounts.Delete(ctx, name, metav1.DeleteOptions{}) })
	for _, give := range gives {
		give(t, kube, name)
	}
	token, err := accounts.CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return token.Status.Token
}

// Connection is the provider's configuration for a cluster and a token, with more lines in it.
func Connection(admin *rest.Config, token, more string) string {
	return fmt.Sprintf("provider \"elastic\" {\n host = %q\n token = %q\n cluster_ca_certificate = %q\n %s\n}\n", admin.Host, token, admin.CAData, more)
}

// Gives gives an account rights.
type Gives func(t *testing.T, kube kubernetes.Interface, account string)

// Everywhere gives rights in the whole cluster.
func Everywhere(rules []rbacv1.PolicyRule) Gives {
	return func(t *testing.T, kube kubernetes.Interface, account string) {
		t.Helper()
		meta := metav1.ObjectMeta{Name: account}
		roles, bindings := kube.RbacV1().ClusterRoles(), kube.RbacV1().ClusterRoleBindings()
		_, errRole := roles.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
		_, errBinding := bindings.Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: account}, Subjects: subjects(account),
		}, metav1.CreateOptions{})
		if err := errors.Join(errRole, errBinding); err != nil {
			t.Fatal(err)
		}
		cleanUp(t, func(ctx context.Context) error {
			return errors.Join(bindings.Delete(ctx, account, metav1.DeleteOptions{}), roles.Delete(ctx, account, metav1.DeleteOptions{}))
		})
	}
}

// In gives rights in one namespace.
func In(namespace string, rules []rbacv1.PolicyRule) Gives {
	return func(t *testing.T, kube kubernetes.Interface, account string) {
		t.Helper()
		meta := metav1.ObjectMeta{Name: account}
		roles, bindings := kube.RbacV1().Roles(namespace), kube.RbacV1().RoleBindings(namespace)
		_, errRole := roles.Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
		_, errBinding := bindings.Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account}, Subjects: subjects(account),
		}, metav1.CreateOptions{})
		if err := errors.Join(errRole, errBinding); err != nil {
			t.Fatal(err)
		}
		cleanUp(t, func(ctx context.Context) error {
			return errors.Join(bindings.Delete(ctx, account, metav1.DeleteOptions{}), roles.Delete(ctx, account, metav1.DeleteOptions{}))
		})
	}
}

func subjects(account string) []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account, Namespace: metav1.NamespaceDefault}}
}

// cleanUp undoes something when the test, whose context has ended then, is over.
func cleanUp(t *testing.T, undo func(context.Context) error) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience.Short)
		defer cancel()
		if err := undo(ctx); err != nil {
			t.Error(err)
		}
	})
}
