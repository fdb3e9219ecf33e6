// Package rbac contains the roles of this folder's files, for the provider's messages about missing permissions and for tests.
package rbac

import (
	_ "embed"
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// YAML is rbac.yaml: ClusterRoles, one document each.
//
//go:embed rbac.yaml
var YAML string

// Suspend is suspend.yaml: a ClusterRole, and the policy without which it is not to be given.
//
//go:embed suspend.yaml
var Suspend string

// ClusterRoles are those of a file's text, in their order.
func ClusterRoles(text string) ([]rbacv1.ClusterRole, error) {
	var roles []rbacv1.ClusterRole
	for document := range strings.SplitSeq(text, "\n---\n") {
		if !strings.Contains(document, "\nkind: ClusterRole\n") {
			continue
		}
		var role rbacv1.ClusterRole
		if err := yaml.UnmarshalStrict([]byte(document), &role); err != nil {
			return nil, fmt.Errorf("read a ClusterRole: %w", err)
		}
		roles = append(roles, role)
	}
	return roles, nil
}
