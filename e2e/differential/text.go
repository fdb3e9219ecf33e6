package differential

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// String is the snapshot in lines, an object each, without what is the same for all of them.
func (s *Snapshot) String() string {
	var b strings.Builder
	for _, namespace := range s.Namespaces {
		fmt.Fprintf(&b, "namespace %s%s\n", namespace.Name, labelText(namespace.Labels))
	}
	for _, node := range s.Nodes {
		fmt.Fprintf(&b, "node %s: %s%s", node.Name, quantities(node.Status.Allocatable), labelText(node.Labels))
		optional(&b, "taints", node.Spec.Taints)
		optional(&b, "images", node.Status.Images)
		if node.Spec.Unschedulable {
			b.WriteString(" cordoned")
		}
		b.WriteByte('\n')
	}
	for _, budget := range s.Budgets {
		fmt.Fprintf(&b, "budget %s/%s: allows %d of %s", budget.Namespace, budget.Name, budget.Status.DisruptionsAllowed, compact(budget.Spec.Selector))
		optional(&b, "disrupted", budget.Status.DisruptedPods)
		b.WriteByte('\n')
	}
	for _, service := range s.Services {
		fmt.Fprintf(&b, "service %s/%s of %s\n", service.Namespace, service.Name, compact(service.Spec.Selector))
	}
	for _, set := range s.ReplicaSets {
		fmt.Fprintf(&b, "replica set %s/%s of %s\n", set.Namespace, set.Name, compact(set.Spec.Selector))
	}
	for _, set := range s.StatefulSets {
		fmt.Fprintf(&b, "stateful set %s/%s of %s\n", set.Namespace, set.Name, compact(set.Spec.Selector))
	}
	for _, controller := range s.ReplicationControllers {
		fmt.Fprintf(&b, "replication controller %s/%s of %s\n", controller.Namespace, controller.Name, compact(controller.Spec.Selector))
	}
	for _, o := range append(s.Storage.objects(), s.Devices.objects()...) {
		objectText(&b, o)
	}
	for _, pod := range s.Pods {
		podText(&b, pod)
	}
	return b.String()
}

// objectText is an object of storage or devices, without what every object has.
func objectText(b *strings.Builder, o runtime.Object) {
	o = o.DeepCopyObject()
	if meta, ok := o.(metav1.Object); ok {
		meta.SetUID("")
		meta.SetResourceVersion("")
		meta.SetCreationTimestamp(metav1.Time{})
	}
	fmt.Fprintf(b, "%s %s\n", reflect.TypeOf(o).Elem().Name(), compact(o))
}

func podText(b *strings.Builder, pod *corev1.Pod) {
	fmt.Fprintf(b, "pod %s", nameOf(pod))
	if pod.Spec.NodeName != "" {
		fmt.Fprintf(b, " on %s", pod.Spec.NodeName)
	}
	if pod.Spec.Priority != nil {
		fmt.Fprintf(b, ", priority %d", *pod.Spec.Priority)
	}
	if policy := pod.Spec.PreemptionPolicy; policy != nil && *policy == corev1.PreemptNever {
		b.WriteString(" that never preempts")
	}
	switch {
	case finished(pod):
		fmt.Fprintf(b, ", %s", pod.Status.Phase)
	case pod.Status.StartTime != nil:
		fmt.Fprintf(b, ", started at %+ds", int(pod.Status.StartTime.Sub(epoch).Seconds()))
	case pod.Spec.NodeName != "":
		b.WriteString(", not started")
	}
	if pod.DeletionTimestamp != nil {
		b.WriteString(", terminating")
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.DisruptionTarget {
				fmt.Fprintf(b, " by %s", condition.Reason)
			}
		}
	}
	if pod.Status.NominatedNodeName != "" {
		fmt.Fprintf(b, ", nominated to %s", pod.Status.NominatedNodeName)
	}
	b.WriteByte(':')
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			container := &containers[i]
			fmt.Fprintf(b, " %s{%s}", container.Name, quantities(container.Resources.Requests))
			if container.RestartPolicy != nil {
				fmt.Fprintf(b, " restarted %s", *container.RestartPolicy)
			}
			optional(b, "ports", container.Ports)
		}
	}
	if pod.Spec.Resources != nil {
		fmt.Fprintf(b, " as a whole %s", quantities(pod.Spec.Resources.Requests))
	}
	if pod.Spec.Overhead != nil {
		fmt.Fprintf(b, " overhead %s", quantities(pod.Spec.Overhead))
	}
	optional(b, "gates", pod.Spec.SchedulingGates)
	if pod.Spec.SchedulerName != corev1.DefaultSchedulerName {
		fmt.Fprintf(b, " for %s", pod.Spec.SchedulerName)
	}
	for i := range pod.Status.ContainerStatuses {
		if status := &pod.Status.ContainerStatuses[i]; status.Resources != nil {
			fmt.Fprintf(b, " %s has %s, allotted %s", status.Name, quantities(status.Resources.Requests), quantities(status.AllocatedResources))
		}
	}
	b.WriteString(labelText(pod.Labels))
	optional(b, "node selector", pod.Spec.NodeSelector)
	optional(b, "tolerates", pod.Spec.Tolerations)
	optional(b, "affinity", pod.Spec.Affinity)
	optional(b, "spread", pod.Spec.TopologySpreadConstraints)
	optional(b, "volumes", pod.Spec.Volumes)
	optional(b, "claims", pod.Spec.ResourceClaims)
	optional(b, "has claims", pod.Status.ResourceClaimStatuses)
	optional(b, "has extended resources by", pod.Status.ExtendedResourceClaimStatus)
	for _, owner := range pod.OwnerReferences {
		fmt.Fprintf(b, " of %s %s", owner.Kind, owner.Name)
	}
	b.WriteByte('\n')
}

func labelText(set map[string]string) string {
	if len(set) == 0 {
		return ""
	}
	return " [" + labels.Set(set).String() + "]"
}

func quantities(list corev1.ResourceList) string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(list)) {
		quantity := list[name]
		texts = append(texts, fmt.Sprintf("%s %s", name, quantity.String()))
	}
	return strings.Join(texts, ", ")
}

// optional writes a value unless it is absent.
func optional(b *strings.Builder, what string, value any) {
	if text := compact(value); text != "null" && text != "{}" && text != "[]" {
		fmt.Fprintf(b, " %s %s", what, text)
	}
}

func compact(value any) string {
	text, err := json.Marshal(value)
	if err != nil { // API types always can be
		panic(err)
	}
	return strings.ReplaceAll(string(text), `"`, "")
}
