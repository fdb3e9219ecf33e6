package forecast

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/placement"
)

// anyPod reports whether any pod of the forecast job meets a condition.
func (f *forecast) anyPod(kind func(*corev1.Pod) bool) bool {
	for _, stage := range f.jobs[f.number].Stages {
		for _, part := range stage {
			if slices.ContainsFunc(part.Pods, func(pod Pod) bool { return kind(pod.Pod) }) {
				return true
			}
		}
	}
	return false
}

// hasClaims reports whether a pod has volume claims.
func hasClaims(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil || v.Ephemeral != nil })
}

// unoffered reports whether a pod requests a resource that no node offers through a device plugin.
func (f *forecast) unoffered(pod *corev1.Pod) bool {
	for name := range scheduler.PodRequests(&pod.Spec) {
		if !slices.ContainsFunc(f.snapshot.Nodes, func(node *corev1.Node) bool { _, has := node.Status.Allocatable[name]; return has }) {
			return true
		}
	}
	return false
}

// claimNames are the claims of a pod, which distinguish it from other pods of its part.
func claimNames(pod *corev1.Pod) (names []string) {
	for i := range pod.Spec.Volumes {
		if claim := pod.Spec.Volumes[i].PersistentVolumeClaim; claim != nil {
			names = append(names, claim.ClaimName)
		}
	}
	return names
}

// volumeHosts are the values that volumes select nodes by, which may include names of nodes.
func volumeHosts(volumes []*corev1.PersistentVolume) (values []string) {
	for _, pv := range volumes {
		if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil {
			continue
		}
		for _, term := range pv.Spec.NodeAffinity.Required.NodeSelectorTerms {
			for _, e := range slices.Concat(term.MatchExpressions, term.MatchFields) {
				values = append(values, e.Values...)
			}
		}
	}
	return values
}

// shareClaims reports whether two of the pods use the same claim of devices or of a volume: where the first of them starts
// decides which nodes the claim allows the other.
func shareClaims(pods []*placement.Pod) bool {
	type claim struct{ kind, namespace, name string }
	used := map[claim]bool{}
	uses := func(c claim) (before bool) {
		before, used[c] = used[c], true
		return before
	}
	for _, pod := range pods {
		object := pod.Object()
		for _, name := range claimNames(object) {
			if uses(claim{"PersistentVolumeClaim", object.Namespace, name}) {
				return true
			}
		}
		for _, c := range object.Spec.ResourceClaims {
			if c.ResourceClaimName != nil && uses(claim{"ResourceClaim", object.Namespace, *c.ResourceClaimName}) {
				return true
			}
		}
	}
	return false
}
