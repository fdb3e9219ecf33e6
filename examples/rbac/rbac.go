// Package rbac has the roles of this folder's rbac.yaml for the provider, which names them to who lacks a right.
package rbac

import _ "embed"

// YAML is rbac.yaml: ClusterRoles, one document each.
//
//go:embed rbac.yaml
var YAML string
