package differential

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// resize resizes a running pod in place: its containers have, and are allocated, other resources than they request.
func (g *generator) resize(pod *corev1.Pod) {
	for i := range pod.Spec.Containers {
		container := &pod.Spec.Containers[i]
		if len(container.Resources.Requests) == 0 || g.chance(0.3) {
			continue
		}
		scaled := func() corev1.ResourceList {
			list := corev1.ResourceList{}
			for name, quantity := range container.Resources.Requests {
				switch name {
				case corev1.ResourceCPU:
					list[name] = *resource.NewMilliQuantity(quantity.MilliValue()*int64(g.within(span{5, 15}))/10, resource.DecimalSI)
				case corev1.ResourceMemory:
					list[name] = *resource.NewQuantity(quantity.Value()*int64(g.within(span{5, 15}))/10, resource.BinarySI)
				default:
					list[name] = quantity
				}
			}
			return list
		}
		status := corev1.ContainerStatus{Name: container.Name, Image: container.Image, Resources: &corev1.ResourceRequirements{Requests: scaled()}}
		if g.chance(0.7) {
			status.AllocatedResources = scaled()
		}
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status)
	}
	if g.chance(0.3) {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: pick(g.rng, corev1.PodReasonInfeasible, corev1.PodReasonDeferred),
		})
	}
}

// bystanders are pods that wait and that the scheduler does not try: gated, or another scheduler's.
func (g *generator) bystanders() {
	for range g.within(span{1, 2}) {
		pod := g.waiting()
		if g.chance(0.5) {
			pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/quota"}}
		} else {
			pod.Spec.SchedulerName = "another-scheduler"
		}
		g.made.Pods = append(g.made.Pods, pod)
	}
}

// odd are requests as few write them: zero, and decimal numbers (1.5G, 0.1).
func (g *generator) odd(requests corev1.ResourceList) {
	switch g.IntN(5) {
	case 0:
		requests[corev1.ResourceCPU] = resource.MustParse("0")
	case 1:
		requests[corev1.ResourceMemory] = resource.MustParse("0")
	case 2:
		requests[corev1.ResourceMemory] = resource.MustParse("1.5G")
	case 3:
		requests[corev1.ResourceCPU] = resource.MustParse("0.1")
	default:
		requests[corev1.ResourceEphemeralStorage] = resource.MustParse("0")
	}
}

// replicationController makes a ReplicationController that owns pods, and so spreads them by default.
func (g *generator) replicationController() {
	selector := map[string]string{"app": pick(g.rng, apps...)}
	g.made.ReplicationControllers = append(g.made.ReplicationControllers, &corev1.ReplicationController{
		ObjectMeta: metav1.ObjectMeta{Name: "replication", Namespace: "default", UID: "replication", CreationTimestamp: metav1.NewTime(epoch.Add(-time.Hour))},
		Spec: corev1.ReplicationControllerSpec{Selector: selector, Template: &corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: selector},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: imageNames[0]}}},
		}},
	})
	for _, pod := range g.made.Pods {
		if pod.Namespace == "default" && pod.Labels["app"] == selector["app"] && len(pod.OwnerReferences) == 0 {
			yes := true
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ReplicationController", Name: "replication", UID: "replication", Controller: &yes}}
		}
	}
}
