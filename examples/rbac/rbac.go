// Package rbac contains the roles of this folder's files, for the provider's messages about missing permissions.
package rbac

import _ "embed"

// YAML is rbac.yaml: ClusterRoles, one document each.
//
//go:embed rbac.yaml
var YAML string

// Suspend is suspend.yaml: a ClusterRole, and the policy without which it is not to be given.
//
//go:embed suspend.yaml
var Suspend string
