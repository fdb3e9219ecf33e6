package differential

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
)

// Minimal is the smallest part of s found for which differs still holds: it removes objects, and then features of
// objects, until none can be removed or ctx ends. The pending pod of the given name stays.
func Minimal(ctx context.Context, s *Snapshot, pod string, differs func(*Snapshot) bool) *Snapshot {
	for {
		smaller := false
		for _, cut := range cuts(s, pod) {
			if ctx.Err() != nil {
				return s
			}
			part := s.Clone()
			if cut(part); compact(part) == compact(s) { // an earlier cut has done it
				continue
			}
			if differs(part) {
				s, smaller = part, true
			}
		}
		if !smaller {
			return s
		}
	}
}

// cuts are ways of making s smaller, those that take much away first. They do nothing where there is nothing left to
// do.
func cuts(s *Snapshot, pod string) []func(*Snapshot) {
	var all []func(*Snapshot)
	for _, node := range s.Nodes {
		all = append(all, func(s *Snapshot) {
			s.Nodes = slices.DeleteFunc(s.Nodes, func(n *corev1.Node) bool { return n.Name == node.Name })
			s.Pods = slices.DeleteFunc(s.Pods, func(p *corev1.Pod) bool { return p.Spec.NodeName == node.Name })
		})
	}
	for _, other := range s.Pods {
		if nameOf(other).String() != pod {
			all = append(all, func(s *Snapshot) {
				s.Pods = slices.DeleteFunc(s.Pods, func(p *corev1.Pod) bool { return nameOf(p) == nameOf(other) })
			})
		}
	}
	all = append(all, func(s *Snapshot) {
		s.Services, s.ReplicaSets, s.StatefulSets, s.ReplicationControllers = nil, nil, nil, nil
	})
	for _, budget := range s.Budgets {
		all = append(all, func(s *Snapshot) {
			s.Budgets = slices.DeleteFunc(s.Budgets, func(b *policyv1.PodDisruptionBudget) bool { return b.Name == budget.Name })
		})
	}
	for _, node := range s.Nodes {
		change := func(how func(*corev1.Node)) {
			all = append(all, func(s *Snapshot) {
				if i := slices.IndexFunc(s.Nodes, func(n *corev1.Node) bool { return n.Name == node.Name }); i >= 0 {
					how(s.Nodes[i])
				}
			})
		}
		change(func(n *corev1.Node) { n.Spec.Taints, n.Spec.Unschedulable = nil, false })
		change(func(n *corev1.Node) { n.Status.Images = nil })
		for key := range node.Labels {
			change(func(n *corev1.Node) { delete(n.Labels, key) })
		}
	}
	all = append(all, claimCuts(s)...)
	for _, subject := range s.Pods {
		for _, trim := range trims {
			all = append(all, func(s *Snapshot) {
				if p := s.pod(nameOf(subject).String()); p != nil {
					trim(p)
				}
			})
		}
	}
	return all
}

// claimCuts take away objects of storage and devices.
func claimCuts(s *Snapshot) (all []func(*Snapshot)) {
	all = append(all, func(s *Snapshot) { s.Storage = Storage{} }, func(s *Snapshot) { s.Devices = Devices{} },
		func(s *Snapshot) { s.Storage.Attachments = nil }, func(s *Snapshot) { s.Storage.Drivers = nil },
		func(s *Snapshot) { s.Storage.Nodes = nil }, func(s *Snapshot) { s.Devices.Templates = nil })
	cut := func(count int, list func(*Snapshot, int)) {
		for i := count - 1; i >= 0; i-- {
			all = append(all, func(s *Snapshot) { list(s, i) })
		}
	}
	cut(len(s.Storage.Volumes), func(s *Snapshot, i int) { s.Storage.Volumes = without(s.Storage.Volumes, i) })
	cut(len(s.Storage.Claims), func(s *Snapshot, i int) {
		if i < len(s.Storage.Claims) && len(s.Storage.Claims[i].OwnerReferences) == 0 { // the engine takes a pod's own as given
			s.Storage.Claims = without(s.Storage.Claims, i)
		}
	})
	cut(len(s.Storage.Nodes), func(s *Snapshot, i int) { s.Storage.Nodes = without(s.Storage.Nodes, i) })
	cut(len(s.Storage.Classes), func(s *Snapshot, i int) { s.Storage.Classes = without(s.Storage.Classes, i) })
	cut(len(s.Devices.Claims), func(s *Snapshot, i int) { s.Devices.Claims = without(s.Devices.Claims, i) })
	cut(len(s.Devices.Slices), func(s *Snapshot, i int) { s.Devices.Slices = without(s.Devices.Slices, i) })
	cut(len(s.Devices.Classes), func(s *Snapshot, i int) { s.Devices.Classes = without(s.Devices.Classes, i) })
	return all
}

// without is a list without its i-th element, if it has one.
func without[T any](list []T, i int) []T {
	if i >= len(list) {
		return list
	}
	return slices.Delete(slices.Clone(list), i, i+1)
}

// trims take features from a pod.
var trims = []func(*corev1.Pod){
	func(p *corev1.Pod) { p.Spec.TopologySpreadConstraints = nil },
	func(p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = p.Spec.TopologySpreadConstraints[:min(1, len(p.Spec.TopologySpreadConstraints))]
	},
	func(p *corev1.Pod) { p.Spec.Affinity = nil },
	func(p *corev1.Pod) { trimAffinity(p, func(a *corev1.Affinity) { a.NodeAffinity = nil }) },
	func(p *corev1.Pod) { trimAffinity(p, func(a *corev1.Affinity) { a.PodAffinity = nil }) },
	func(p *corev1.Pod) { trimAffinity(p, func(a *corev1.Affinity) { a.PodAntiAffinity = nil }) },
	func(p *corev1.Pod) { p.Spec.NodeSelector = nil },
	func(p *corev1.Pod) { p.Spec.Tolerations = nil },
	func(p *corev1.Pod) { p.Spec.InitContainers = nil },
	func(p *corev1.Pod) { p.Spec.Containers = p.Spec.Containers[:1] },
	func(p *corev1.Pod) { p.Spec.Containers[0].Ports = nil },
	func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = p.Spec.Containers[0].Ports[:min(1, len(p.Spec.Containers[0].Ports))]
	},
	withoutResource(corev1.ResourceMemory), withoutResource(corev1.ResourceCPU), withoutResource(mapped),
	func(p *corev1.Pod) { p.Spec.Resources = nil },
	func(p *corev1.Pod) { p.Spec.Overhead, p.Spec.RuntimeClassName = nil, nil },
	func(p *corev1.Pod) { p.OwnerReferences = nil },
	func(p *corev1.Pod) { p.Status.ContainerStatuses = nil },
	func(p *corev1.Pod) { p.Labels = nil },
	func(p *corev1.Pod) { p.Status.NominatedNodeName = "" },
	func(p *corev1.Pod) { p.Spec.Volumes = nil },
	func(p *corev1.Pod) { p.Spec.Volumes = p.Spec.Volumes[:min(1, len(p.Spec.Volumes))] },
	func(p *corev1.Pod) { p.Spec.Volumes = p.Spec.Volumes[min(1, len(p.Spec.Volumes)):] },
	func(p *corev1.Pod) {
		p.Spec.ResourceClaims, p.Spec.Containers[0].Resources.Claims = nil, nil
		p.Status.ResourceClaimStatuses, p.Status.ExtendedResourceClaimStatus = nil, nil
	},
}

// withoutResource takes the limit away, too: the API server makes it the request where that is missing.
func withoutResource(name corev1.ResourceName) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		delete(p.Spec.Containers[0].Resources.Requests, name)
		delete(p.Spec.Containers[0].Resources.Limits, name)
	}
}

// trimAffinity leaves a pod without affinity as it is.
func trimAffinity(p *corev1.Pod, trim func(*corev1.Affinity)) {
	if p.Spec.Affinity != nil {
		trim(p.Spec.Affinity)
	}
}
