package cluster_test

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
)

// TestAListThatOthersChangedHasAnotherValue looks at the rules of a Role, of which ours has one.
func TestAListThatOthersChangedHasAnotherValue(t *testing.T) {
	ours := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list"}}
	desired := []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{"get", "list"}}}
	changed := func(change func(*rbacv1.PolicyRule)) rbacv1.PolicyRule {
		rule := *ours.DeepCopy()
		change(&rule)
		return rule
	}
	secrets := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}
	for name, test := range map[string]struct {
		live  []rbacv1.PolicyRule
		drift bool
	}{
		"the same rule":            {[]rbacv1.PolicyRule{ours}, false},
		"a rule behind it":         {[]rbacv1.PolicyRule{ours, secrets}, true},
		"a rule before it":         {[]rbacv1.PolicyRule{secrets, ours}, true},
		"no rule":                  {nil, true},
		"another verb":             {[]rbacv1.PolicyRule{changed(func(r *rbacv1.PolicyRule) { r.Verbs[1] = "delete" })}, true},
		"one more verb":            {[]rbacv1.PolicyRule{changed(func(r *rbacv1.PolicyRule) { r.Verbs = append(r.Verbs, "delete") })}, true},
		"one verb less":            {[]rbacv1.PolicyRule{changed(func(r *rbacv1.PolicyRule) { r.Verbs = r.Verbs[:1] })}, true},
		"a field that ours leaves": {[]rbacv1.PolicyRule{changed(func(r *rbacv1.PolicyRule) { r.ResourceNames = []string{"one"} })}, false},
	} {
		t.Run(name, func(t *testing.T) {
			taken := []cluster.Overwritten{{Path: []string{"rules"}, Manager: "kubectl", Desired: desired}}
			others, err := cluster.WithOtherValues(&rbacv1.Role{Rules: test.live}, taken)
			if err != nil || (len(others) > 0) != test.drift {
				t.Errorf("%v, %v; want a difference: %t", others, err, test.drift)
			}
		})
	}
}
