package forecast

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// maxOwners bounds the length of a chain of owners: a pod of a Job of a JobSet of a TrainJob has three.
const maxOwners = 8

// workloadPods are the pods that a workload admitted, with and without a node. A pod belongs to the Workload that its
// annotation names, which Kueue sets on all pods that it admits; else to the Workload that owns the pod, or the Job or
// other object above it.
func (f *forecast) workloadPods(name types.NamespacedName) []*corev1.Pod {
	if f.workloads == nil {
		f.workloads = f.podsByWorkload()
	}
	return f.workloads[name]
}

func (f *forecast) podsByWorkload() map[types.NamespacedName][]*corev1.Pod {
	byOwner := map[types.UID]types.NamespacedName{}
	for name, w := range f.queues.known {
		for _, o := range w.OwnerReferences {
			byOwner[o.UID] = name
		}
	}
	above := f.owners()
	found := map[types.NamespacedName][]*corev1.Pod{}
	for _, pod := range f.pods {
		name, annotated := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Annotations[kueue.WorkloadAnnotation]}, false
		if name.Name != "" {
			_, annotated = f.queues.known[name]
		}
		owned := annotated
		for uid, n := pod.UID, 0; !owned && uid != "" && n < maxOwners; n++ {
			if name, owned = byOwner[uid]; !owned {
				uid = above[uid]
			}
		}
		if owned {
			found[name] = append(found[name], pod)
		}
	}
	return found
}

// owners is the controller of every pod, and of every object between pods and the queued object, as far as they were
// read.
func (f *forecast) owners() map[types.UID]types.UID {
	above := map[types.UID]types.UID{}
	add := func(object metav1.Object) {
		if controller := metav1.GetControllerOfNoCopy(object); controller != nil {
			above[object.GetUID()] = controller.UID
		}
	}
	for _, pod := range f.pods {
		add(pod)
	}
	for _, job := range f.snapshot.BatchJobs {
		add(job)
	}
	for _, set := range f.snapshot.ReplicaSets {
		add(set)
	}
	for _, set := range f.snapshot.StatefulSets {
		add(set)
	}
	return above
}

// noteMissingPods notes that a workload which loses its quota has more pods than were found: on their nodes, wherever
// they are, room becomes free that the forecast does not count.
func (f *forecast) noteMissingPods(name types.NamespacedName) {
	w := f.queues.known[name]
	if w == nil || w.Status.Admission == nil {
		return
	}
	admitted := 0
	for _, set := range w.Status.Admission.PodSetAssignments {
		if set.Count != nil {
			admitted += int(*set.Count)
		}
		at := slices.IndexFunc(w.Status.ReclaimablePods, func(r kueue.ReclaimablePod) bool { return r.Name == set.Name })
		if at >= 0 {
			admitted -= int(w.Status.ReclaimablePods[at].Count)
		}
	}
	if found := len(f.workloadPods(name)); found < admitted {
		f.notes.add(PodsNotFound, "Workload "+name.String(), "workload %s is admitted with %d pods, of which %d were found: the room that the others leave is not counted",
			shortName(name.Namespace, name.Name), admitted, found)
	}
}
