package forecast

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/placement"
)

// With returns the cluster after the creation of objects that affect pods, such as those that a file or a plan creates
// together with its jobs. It ignores objects of kinds that no forecast reads.
func (s *Snapshot) With(objects []runtime.Object) *Snapshot {
	after := *s
	queues := Queues{}
	if s.Queues != nil {
		queues = *s.Queues
	}
	queued := s.Queues != nil
	for _, object := range objects {
		after.RulesPlanned = after.RulesPlanned || admitsPods(object)
		switch o := object.(type) {
		case *corev1.Namespace:
			after.Namespaces = put(after.Namespaces, o)
		case *corev1.Service:
			after.Services = put(after.Services, o)
		case *corev1.LimitRange:
			after.LimitRanges = put(after.LimitRanges, o)
		case *corev1.ResourceQuota:
			after.Quotas = put(after.Quotas, o)
		case *schedulingv1.PriorityClass:
			after.PriorityClasses = put(after.PriorityClasses, o)
		case *nodev1.RuntimeClass:
			after.RuntimeClasses = put(after.RuntimeClasses, o)
		case *corev1.ServiceAccount:
			after.PlannedAccounts = append(slices.Clip(after.PlannedAccounts), types.NamespacedName{Namespace: o.Namespace, Name: o.Name})
		case *policyv1.PodDisruptionBudget:
			after.Budgets = put(after.Budgets, o)
			after.PlannedBudgets = append(slices.Clip(after.PlannedBudgets), o.Name)
		default:
			queued = queues.put(object) || queued
			after.Storage = withStorage(after.Storage, object)
			after.Devices = withDevices(after.Devices, object)
		}
	}
	if queued {
		after.Queues = &queues
	}
	return &after
}

func withStorage(s placement.Storage, object runtime.Object) placement.Storage {
	switch o := object.(type) {
	case *corev1.PersistentVolumeClaim:
		s.Claims = put(s.Claims, o)
	case *corev1.PersistentVolume:
		if o.Status.Phase == "" && o.Spec.ClaimRef == nil { // its controller sets this immediately
			o = o.DeepCopy()
			o.Status.Phase = corev1.VolumeAvailable
		}
		s.Volumes = put(s.Volumes, o)
	case *storagev1.StorageClass:
		s.Classes = put(s.Classes, o)
	}
	return s
}

func withDevices(d placement.Devices, object runtime.Object) placement.Devices {
	switch o := object.(type) {
	case *resourcev1.DeviceClass:
		d.Classes = put(d.Classes, o)
	case *resourcev1.ResourceClaim:
		d.Claims = put(d.Claims, o)
	case *resourcev1.ResourceClaimTemplate:
		d.Templates = put(d.Templates, o)
	}
	return d
}

// admitsPods reports whether the API server admits pods by an object.
func admitsPods(object runtime.Object) bool {
	switch object.(type) {
	case *corev1.Namespace, *corev1.LimitRange, *schedulingv1.PriorityClass, *nodev1.RuntimeClass:
		return true
	}
	return false
}

// put applies one of Kueue's objects, and reports whether the object is of Kueue.
func (q *Queues) put(object runtime.Object) bool {
	switch o := object.(type) {
	case *kueue.ClusterQueue:
		q.ClusterQueues = put(q.ClusterQueues, o)
	case *kueue.LocalQueue:
		q.LocalQueues = put(q.LocalQueues, o)
	case *kueue.ResourceFlavor:
		q.Flavors = put(q.Flavors, o)
	case *kueue.Cohort:
		q.Cohorts = put(q.Cohorts, o)
	case *kueue.AdmissionCheck:
		q.AdmissionChecks = put(q.AdmissionChecks, o)
	case *kueue.WorkloadPriorityClass:
		q.PriorityClasses = put(q.PriorityClasses, o)
	case *kueue.Topology:
		q.Topologies = put(q.Topologies, o)
	default:
		return false
	}
	return true
}

// put returns a list with an object added, or with the object of the same name replaced.
func put[T metav1.Object](list []T, object T) []T {
	list = slices.Clone(list)
	if at := indexOf(list, object.GetNamespace(), object.GetName()); at >= 0 {
		list[at] = object
		return list
	}
	return append(list, object)
}

func indexOf[T metav1.Object](list []T, namespace, name string) int {
	return slices.IndexFunc(list, func(o T) bool { return o.GetNamespace() == namespace && o.GetName() == name })
}

// Without returns the cluster after the deletion of objects: their pods and Workloads are gone when planned jobs start,
// and objects that affect pods no longer do.
func (s *Snapshot) Without(deletions []Deletion) *Snapshot {
	after := *s
	after.Deletions = append(slices.Clip(s.Deletions), deletions...)
	if s.Queues != nil {
		queues := *s.Queues
		after.Queues = &queues
	}
	for _, d := range deletions {
		switch d.Kind {
		case "Service":
			after.Services = drop(after.Services, d)
		case "LimitRange":
			after.LimitRanges = drop(after.LimitRanges, d)
		case "ResourceQuota":
			after.Quotas = drop(after.Quotas, d)
		case "PriorityClass":
			after.PriorityClasses = drop(after.PriorityClasses, d)
		case "RuntimeClass":
			after.RuntimeClasses = drop(after.RuntimeClasses, d)
		case "PodDisruptionBudget":
			after.Budgets = drop(after.Budgets, d)
		case "PersistentVolumeClaim":
			after.Storage.Claims = drop(after.Storage.Claims, d)
		case "PersistentVolume":
			after.Storage.Volumes = drop(after.Storage.Volumes, d)
		case "StorageClass":
			after.Storage.Classes = drop(after.Storage.Classes, d)
		case "DeviceClass":
			after.Devices.Classes = drop(after.Devices.Classes, d)
		case "ResourceClaim":
			after.Devices.Claims = drop(after.Devices.Claims, d)
		case "ResourceClaimTemplate":
			after.Devices.Templates = drop(after.Devices.Templates, d)
		case "Namespace":
			after.Namespaces = drop(after.Namespaces, d)
			after.Pods = slices.DeleteFunc(slices.Clone(after.Pods), func(p *corev1.Pod) bool { return p.Namespace == d.Name })
		}
		if after.Queues != nil {
			after.Queues.drop(d)
		}
	}
	return &after
}

func (q *Queues) drop(d Deletion) {
	switch d.Kind {
	case "ClusterQueue":
		q.ClusterQueues = drop(q.ClusterQueues, d)
	case "LocalQueue":
		q.LocalQueues = drop(q.LocalQueues, d)
	case "ResourceFlavor":
		q.Flavors = drop(q.Flavors, d)
	case "Cohort":
		q.Cohorts = drop(q.Cohorts, d)
	case "AdmissionCheck":
		q.AdmissionChecks = drop(q.AdmissionChecks, d)
	case "WorkloadPriorityClass":
		q.PriorityClasses = drop(q.PriorityClasses, d)
	case "Topology":
		q.Topologies = drop(q.Topologies, d)
	case "Namespace":
		q.LocalQueues = slices.DeleteFunc(slices.Clone(q.LocalQueues), func(o *kueue.LocalQueue) bool { return o.Namespace == d.Name })
		q.Workloads = slices.DeleteFunc(slices.Clone(q.Workloads), func(o *kueue.Workload) bool { return o.Namespace == d.Name })
	}
}

func drop[T metav1.Object](list []T, d Deletion) []T {
	if at := indexOf(list, d.Namespace, d.Name); at >= 0 {
		return slices.Delete(slices.Clone(list), at, at+1)
	}
	return list
}
