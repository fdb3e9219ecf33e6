// Package kubeversion is the one place that declares the version of Kubernetes: of the embedded control plane, of what the
// simulated nodes report, and of the k8s.io modules in every go.mod of the repository.
package kubeversion

import (
	_ "embed" // version.txt
	"strings"
)

//go:embed version.txt
var text string

// Version is the version of Kubernetes, such as "v1.36.1".
var Version = strings.TrimSpace(text)
