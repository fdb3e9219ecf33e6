package placement

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// TestedVersions are the minor versions of Kubernetes whose scheduler this package has been compared with, decision by
// decision: e2e/differential. Rules of other versions may differ.
var TestedVersions = []string{"1.36"}

// Untested describes a cluster's version if this package was not compared with it, as the end of a sentence. It is "" for
// one that was tested, and for "", which nobody asked for. gitVersion is that of the API server, such as "v1.34.1-gke.3355002".
func Untested(gitVersion string) string {
	if gitVersion == "" {
		return ""
	}
	v, err := version.ParseGeneric(gitVersion)
	if err != nil {
		return "of an unknown version"
	}
	minor := fmt.Sprintf("%d.%d", v.Major(), v.Minor())
	if slices.Contains(TestedVersions, minor) {
		return ""
	}
	return "of version " + minor
}

// Tested names the tested versions in a sentence.
func Tested() string { return strings.Join(TestedVersions, " and ") }
