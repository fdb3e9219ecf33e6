package provider

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	podresources "k8s.io/component-helpers/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// room is the capacity of a node, or of several together.
type room struct {
	allocatable corev1.ResourceList
	requested   corev1.ResourceList
	free        corev1.ResourceList
}

// roomOn is the room on a node as kube-scheduler reckons it: what the pods on it request, running or not, is taken.
// It has exactly the resources that are allocatable there; free is never below zero, though a node may be
// overcommitted.
func roomOn(node *corev1.Node, pods []*corev1.Pod) room {
	used := corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(int64(len(pods)), resource.DecimalSI)}
	for _, pod := range pods {
		for name, amount := range podresources.PodRequests(pod, podresources.PodResourcesOptions{UseStatusResources: true}) {
			addTo(used, name, amount)
		}
	}
	r := room{allocatable: node.Status.Allocatable, requested: corev1.ResourceList{}, free: corev1.ResourceList{}}
	for name, amount := range node.Status.Allocatable {
		r.requested[name] = used[name]
		r.free[name] = remainder(amount, used[name])
	}
	return r
}

// plus is the sum of both. Its free part may be in pieces too small for a pod.
func (r room) plus(other room) room {
	sum := room{allocatable: corev1.ResourceList{}, requested: corev1.ResourceList{}, free: corev1.ResourceList{}}
	for _, part := range []room{r, other} {
		for name, amount := range part.allocatable {
			addTo(sum.allocatable, name, amount)
			addTo(sum.requested, name, part.requested[name])
			addTo(sum.free, name, part.free[name])
		}
	}
	return sum
}

func addTo(list corev1.ResourceList, name corev1.ResourceName, amount resource.Quantity) {
	sum := list[name].DeepCopy()
	sum.Add(amount)
	list[name] = sum
}

// remainder is the rest of an amount, at least zero.
func remainder(amount, used resource.Quantity) resource.Quantity {
	left := amount.DeepCopy()
	left.Sub(used)
	if left.Sign() < 0 {
		left.Set(0)
	}
	return left
}

// flavorQuota is a ClusterQueue's quota of one resource of one flavor.
type flavorQuota struct {
	flavor, resource string
	nominal          resource.Quantity
	borrowingLimit   *resource.Quantity // nil for none
	lendingLimit     *resource.Quantity // nil for none
	used             resource.Quantity  // held by workloads with quota, admitted or not
	borrowed         resource.Quantity  // the part of it beyond the nominal quota
	free             resource.Quantity  // what is left of the nominal quota
}

// quotasOf are a queue's quotas in the order of its specification, with the use that Kueue last reported.
func quotasOf(queue *kueue.ClusterQueue) []flavorQuota {
	type key struct{ flavor, resource string }
	used := map[key]kueue.ResourceUsage{}
	for _, flavor := range queue.Status.FlavorsReservation {
		for _, usage := range flavor.Resources {
			used[key{string(flavor.Name), string(usage.Name)}] = usage
		}
	}
	var quotas []flavorQuota
	for _, group := range queue.Spec.ResourceGroups {
		for _, flavor := range group.Flavors {
			for _, quota := range flavor.Resources {
				usage := used[key{string(flavor.Name), string(quota.Name)}]
				quotas = append(quotas, flavorQuota{
					flavor: string(flavor.Name), resource: string(quota.Name), nominal: quota.NominalQuota,
					borrowingLimit: quota.BorrowingLimit, lendingLimit: quota.LendingLimit,
					used: usage.Total, borrowed: usage.Borrowed, free: remainder(quota.NominalQuota, usage.Total),
				})
			}
		}
	}
	return quotas
}
