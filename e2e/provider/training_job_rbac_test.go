package provider_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
)

// TestGrantingMorePermissionsThanOneHasNamesTheRemedy uses an account that may create every object of a job, but none of
// its pods.
func TestGrantingMorePermissionsThanOneHasNamesTheRemedy(t *testing.T) {
	all := []string{"get", "list", "watch", "create", "update", "patch", "delete"}
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: all},
		{APIGroups: []string{""}, Resources: []string{"configmaps", "secrets", "serviceaccounts", "services"}, Verbs: all},
		{APIGroups: []string{"rbac.authorization.k8s.io"}, Resources: []string{"roles", "rolebindings"}, Verbs: all},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: all},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}},
	}
	limited := providertest.Account(t, adminConfig(t), "grants", "", providertest.In("default", rules))
	steps(t,
		resource.TestStep{ // what was made until then is in the state, and goes with the next apply
			Config: limited + trainingJob("beyond", ""),
			ExpectError: wantText("Cannot create Role default/beyond", "attempting to grant RBAC permissions not currently held", `Resources:["pods"]`,
				"or set service_account_name to an existing account"),
		},
		resource.TestStep{
			Config:           limited + trainingJob("beyond", `service_account_name = "default"`),
			ConfigPlanChecks: plannedJob(plancheck.ResourceActionDestroyBeforeCreate),
		},
	)
	nothingLeft(t, "beyond")
}
