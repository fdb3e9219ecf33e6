package differential

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// A Snapshot is a cluster as its API server has it. Objects are as they would be read: with defaults, priorities and
// status.
type Snapshot struct {
	Namespaces             []*corev1.Namespace
	Classes                []*schedulingv1.PriorityClass
	Runtimes               []*nodev1.RuntimeClass
	Nodes                  []*corev1.Node
	Budgets                []*policyv1.PodDisruptionBudget
	Services               []*corev1.Service
	ReplicaSets            []*appsv1.ReplicaSet
	StatefulSets           []*appsv1.StatefulSet
	ReplicationControllers []*corev1.ReplicationController
	Storage                Storage
	Devices                Devices
	// Pods are all of them: running, terminating, finished and pending.
	Pods []*corev1.Pod
}

// Clone copies s and everything in it.
func (s *Snapshot) Clone() *Snapshot {
	return &Snapshot{
		Namespaces:             cloned(s.Namespaces),
		Classes:                cloned(s.Classes),
		Runtimes:               cloned(s.Runtimes),
		Nodes:                  cloned(s.Nodes),
		Budgets:                cloned(s.Budgets),
		Services:               cloned(s.Services),
		ReplicaSets:            cloned(s.ReplicaSets),
		StatefulSets:           cloned(s.StatefulSets),
		ReplicationControllers: cloned(s.ReplicationControllers),
		Storage:                s.Storage.clone(),
		Devices:                s.Devices.clone(),
		Pods:                   cloned(s.Pods),
	}
}

// Pending are the pods that wait for the scheduler to find them a node, in the order in which kube-scheduler takes
// them: by priority, and then in the order of creation.
func (s *Snapshot) Pending() []*corev1.Pod {
	var pending []*corev1.Pod
	for _, pod := range s.Pods {
		if waits(pod) {
			pending = append(pending, pod)
		}
	}
	slices.SortStableFunc(pending, func(a, b *corev1.Pod) int {
		if *a.Spec.Priority != *b.Spec.Priority {
			return int(int64(*b.Spec.Priority) - int64(*a.Spec.Priority))
		}
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	return pending
}

// objects are all objects of s. Finished pods are left out where the scheduler's own selection of pods leaves them out.
func (s *Snapshot) objects() []runtime.Object {
	var objects []runtime.Object
	objects = appendObjects(objects, s.Namespaces)
	objects = appendObjects(objects, s.Classes)
	objects = appendObjects(objects, s.Runtimes)
	objects = appendObjects(objects, s.Nodes)
	objects = appendObjects(objects, s.Budgets)
	objects = appendObjects(objects, s.Services)
	objects = appendObjects(objects, s.ReplicaSets)
	objects = appendObjects(objects, s.StatefulSets)
	objects = appendObjects(objects, s.ReplicationControllers)
	objects = append(objects, s.Storage.objects()...)
	objects = append(objects, s.Devices.objects()...)
	return appendObjects(objects, s.Pods)
}

// waits reports whether the scheduler tries a pod.
func waits(pod *corev1.Pod) bool { return queues(pod) && len(pod.Spec.SchedulingGates) == 0 }

// queues reports whether a pod is in the scheduler's queue, if only behind a gate.
func queues(pod *corev1.Pod) bool {
	return pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && pod.Spec.SchedulerName == corev1.DefaultSchedulerName && !finished(pod)
}

func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func nameOf(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

// object is a pointer to an API type.
type object[T any] interface {
	*T
	runtime.Object
	DeepCopy() *T
}

func cloned[T any, P object[T]](list []P) []P {
	clones := make([]P, len(list))
	for i, o := range list {
		clones[i] = o.DeepCopy()
	}
	return clones
}

func appendObjects[T any, P object[T]](objects []runtime.Object, list []P) []runtime.Object {
	for _, o := range list {
		objects = append(objects, o)
	}
	return objects
}

func (s *Snapshot) pod(name string) *corev1.Pod {
	for _, pod := range s.Pods {
		if nameOf(pod).String() == name {
			return pod
		}
	}
	return nil
}
