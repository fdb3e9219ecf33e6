package placement

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/version"
)

// TestedVersions are the minor versions of Kubernetes whose scheduler this package has been compared with, decision by
// decision: e2e/differential. The last is the one whose rules an unknown version gets. Rules of other versions may
// differ.
var TestedVersions = []string{"1.36", "1.37"}

// rules are what differs between the tested versions with the feature gates that are on by default.
type rules struct {
	// gatedNominations: a pod with scheduling gates keeps the room on the node that it is nominated to
	// (PriorityQueue.Add).
	gatedNominations bool
	// resizeByPod: what a pod holds while it is resized is the greatest of its requests, of what it was allocated and
	// of what it has, each summed over its containers; before, the sum of each container's greatest (component-helpers,
	// AggregateContainerRequests).
	resizeByPod bool
	// imageVolumes count among the images by whose number a node's score is divided (imagelocality, sumImageScores).
	imageVolumes bool
	// messages without what DynamicResources adds about claims, and with the node that a preemption makes room on
	// (dynamicresources, PostFilter; preemption, Preempt).
	plainMessages bool
	// missingDrivers: a node without a CSI driver takes no pod with its volumes, where the driver asks for that
	// (VolumeLimitScaling).
	missingDrivers bool
	// volumeScores: nodes are preferred whose volumes would be used the least (StorageCapacityScoring).
	volumeScores bool
	// untilViolated: a victim takes from the budgets that cover it up to the first that does not allow its eviction; before,
	// from all (preemption, FilterVictimsWithPDBViolation).
	untilViolated bool
}

// rulesOf are the rules of an API server's version, which for the unmodified scheduler is its own.
func rulesOf(gitVersion string) rules {
	newest := rules{
		gatedNominations: true, resizeByPod: true, imageVolumes: true, plainMessages: true, missingDrivers: true, volumeScores: true,
		untilViolated: true,
	}
	if minor, err := minorOf(gitVersion); err == nil && minor == "1.36" {
		return rules{}
	}
	return newest
}

// Untested describes a cluster's version if this package was not compared with it, as the end of a sentence. It is ""
// for one that was tested, and for "", which is an unknown version. gitVersion is that of the API server, such as
// "v1.34.1-gke.3355002".
func Untested(gitVersion string) string {
	if gitVersion == "" {
		return ""
	}
	minor, err := minorOf(gitVersion)
	switch {
	case err != nil:
		return "of an unknown version"
	case slices.Contains(TestedVersions, minor):
		return ""
	}
	return "of version " + minor
}

// Tested names the tested versions in a sentence.
func Tested() string { return list(TestedVersions) }

// minorOf is "1.36" for "v1.36.1-gke.3355002".
func minorOf(gitVersion string) (string, error) {
	v, err := version.ParseGeneric(gitVersion)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d.%d", v.Major(), v.Minor()), nil
}
