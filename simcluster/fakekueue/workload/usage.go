package workload

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
)

// A pair is a resource in a flavor.
type pair struct {
	flavor   kueue.ResourceFlavorReference
	resource corev1.ResourceName
}

// usage sums up what workloads that are counted hold.
func usage(workloads []*kueue.Workload, counted func(*kueue.Workload) bool) map[pair]resource.Quantity {
	sums := map[pair]resource.Quantity{}
	for _, w := range workloads {
		if !HasQuota(w) || IsFinished(w) || !IsActive(w) || !counted(w) {
			continue
		}
		for i, assignment := range w.Status.Admission.PodSetAssignments {
			for name, flavor := range assignment.Flavors {
				sum := sums[pair{flavor, name}]
				sum.Add(held(w, i, assignment, name))
				sums[pair{flavor, name}] = sum
			}
		}
	}
	return sums
}

// held is what a pod set holds of a resource: as much as it was given, less what its pods need no longer.
func held(w *kueue.Workload, set int, assignment kueue.PodSetAssignment, name corev1.ResourceName) resource.Quantity {
	given := assignment.ResourceUsage[name]
	count := ptr.Deref(assignment.Count, w.Spec.PodSets[set].Count)
	left := max(0, w.Spec.PodSets[set].Count-reclaimed(w, assignment.Name))
	if left >= count || count == 0 {
		return given
	}
	if name == corev1.ResourceCPU {
		return *resource.NewMilliQuantity(given.MilliValue()/int64(count)*int64(left), given.Format)
	}
	return *resource.NewQuantity(given.Value()/int64(count)*int64(left), given.Format)
}

// CountQueue fills the counts and sums of a ClusterQueue's status from all workloads that its LocalQueues have, or that
// hold quota of it.
func CountQueue(status *kueue.ClusterQueueStatus, queue *kueue.ClusterQueue, workloads []*kueue.Workload, waiting int32) {
	status.PendingWorkloads = waiting
	status.ReservingWorkloads, status.AdmittedWorkloads = count(workloads)
	status.FlavorsReservation = clusterUsage(queue, usage(workloads, func(*kueue.Workload) bool { return true }))
	status.FlavorsUsage = clusterUsage(queue, usage(workloads, IsAdmitted))
}

// CountLocalQueue does so for a LocalQueue, from its workloads. What one of them holds in another ClusterQueue,
// admitted before the LocalQueue was made anew, does not count. cluster is nil where the ClusterQueue does not exist.
func CountLocalQueue(status *kueue.LocalQueueStatus, cluster *kueue.ClusterQueue, workloads []*kueue.Workload, waiting int32) {
	status.PendingWorkloads = waiting
	status.ReservingWorkloads, status.AdmittedWorkloads, status.FlavorsReservation, status.FlavorsUsage = 0, 0, nil, nil
	if cluster == nil {
		return
	}
	workloads = slices.DeleteFunc(slices.Clone(workloads), func(w *kueue.Workload) bool {
		return !HasQuota(w) || string(w.Status.Admission.ClusterQueue) != cluster.Name
	})
	status.ReservingWorkloads, status.AdmittedWorkloads = count(workloads)
	status.FlavorsReservation = localUsage(cluster, usage(workloads, func(*kueue.Workload) bool { return true }))
	status.FlavorsUsage = localUsage(cluster, usage(workloads, IsAdmitted))
}

func count(workloads []*kueue.Workload) (reserving, admitted int32) {
	for _, w := range workloads {
		if !HasQuota(w) || IsFinished(w) || !IsActive(w) {
			continue
		}
		reserving++
		if IsAdmitted(w) {
			admitted++
		}
	}
	return reserving, admitted
}

func clusterUsage(queue *kueue.ClusterQueue, sums map[pair]resource.Quantity) []kueue.FlavorUsage {
	var all []kueue.FlavorUsage
	for _, group := range queue.Spec.ResourceGroups {
		for _, flavor := range group.Flavors {
			entry := kueue.FlavorUsage{Name: flavor.Name}
			for _, quota := range flavor.Resources {
				total := inForm(sums[pair{flavor.Name, quota.Name}], quota.NominalQuota)
				borrowed := resource.Quantity{Format: total.Format}
				if queue.Spec.CohortName != "" && total.Cmp(quota.NominalQuota) > 0 {
					borrowed = total.DeepCopy()
					borrowed.Sub(quota.NominalQuota)
				}
				entry.Resources = append(entry.Resources, kueue.ResourceUsage{Name: quota.Name, Total: total, Borrowed: borrowed})
			}
			all = append(all, entry)
		}
	}
	return all
}

func localUsage(queue *kueue.ClusterQueue, sums map[pair]resource.Quantity) []kueue.LocalQueueFlavorUsage {
	var all []kueue.LocalQueueFlavorUsage
	for _, group := range queue.Spec.ResourceGroups {
		for _, flavor := range group.Flavors {
			entry := kueue.LocalQueueFlavorUsage{Name: flavor.Name}
			for _, quota := range flavor.Resources {
				entry.Resources = append(entry.Resources, kueue.LocalQueueResourceUsage{Name: quota.Name, Total: inForm(sums[pair{flavor.Name, quota.Name}], quota.NominalQuota)})
			}
			all = append(all, entry)
		}
	}
	return all
}

// inForm is a quantity in another's notation, decimal or binary.
func inForm(q, like resource.Quantity) resource.Quantity {
	q.Format = like.Format
	// The canonical form is computed when a quantity is parsed.
	if canonical, err := resource.ParseQuantity(q.String()); err == nil {
		return canonical
	}
	return q
}
