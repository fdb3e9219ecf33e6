package provider_test

import (
	"fmt"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestWhoGrantsMoreThanTheyMayIsToldTheWayOut has a user who may make every object of a job, but none of its pods.
func TestWhoGrantsMoreThanTheyMayIsToldTheWayOut(t *testing.T) {
	kube, name := adminClient(t), "grants"
	all := []string{"get", "list", "watch", "create", "update", "patch", "delete"}
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: all},
		{APIGroups: []string{""}, Resources: []string{"configmaps", "secrets", "serviceaccounts", "services"}, Verbs: all},
		{APIGroups: []string{"rbac.authorization.k8s.io"}, Resources: []string{"roles", "rolebindings"}, Verbs: all},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: all},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}},
	}
	meta := metav1.ObjectMeta{Name: name, Namespace: "default"}
	if _, err := kube.CoreV1().ServiceAccounts("default").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := kube.RbacV1().Roles("default").Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: "default"}},
	}
	if _, err := kube.RbacV1().RoleBindings("default").Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := cleanupContext(t)
		for _, err := range []error{
			kube.RbacV1().RoleBindings("default").Delete(ctx, name, metav1.DeleteOptions{}),
			kube.RbacV1().Roles("default").Delete(ctx, name, metav1.DeleteOptions{}),
			kube.CoreV1().ServiceAccounts("default").Delete(ctx, name, metav1.DeleteOptions{}),
		} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	token, err := kube.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	admin := adminConfig(t)
	limited := fmt.Sprintf("provider \"elastic\" {\n host = %q\n token = %q\n cluster_ca_certificate = %q\n}\n", admin.Host, token.Status.Token, admin.CAData)
	steps(t,
		resource.TestStep{ // what was made until then is in the state, and goes with the next apply
			Config: limited + trainingJob("beyond", ""),
			ExpectError: says("Cannot create Role default/beyond", "attempting to grant RBAC permissions not currently held", `Resources:["pods"]`,
				"or name an account that has them by service_account_name"),
		},
		resource.TestStep{
			Config:           limited + trainingJob("beyond", `service_account_name = "default"`),
			ConfigPlanChecks: plannedJob(plancheck.ResourceActionDestroyBeforeCreate),
		},
	)
	nothingLeft(t, "beyond")
}
