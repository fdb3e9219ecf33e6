package placement

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler"
)

// Pod is a pod made ready for scheduling: parsed once, never changed, compared by pointer. A copy with another Name,
// Priority, Created or Started is another pod of the same shape, and cheap: simulations make thousands so. It belongs
// to the Cluster that made it, and that one's clones.
type Pod struct {
	Name     string
	Priority int32
	// Created orders pods of equal priority in the queue.
	Created time.Time
	// Started is the pod's status.startTime; zero: it has not started. Among victims of equal priority those that run
	// longest are spared first.
	Started time.Time

	*shape
}

// shape is the data that pods of one template share.
type shape struct {
	object    *corev1.Pod
	namespace string
	labels    labels.Set

	demands
	ports []hostPort
	wants *wants // devices; nil for none

	// Terms of affinity to other pods. kube-scheduler: framework.PodInfo.
	affinity, antiAffinity                   []term
	preferredAffinity, preferredAntiAffinity []term

	preFilterState *preFilterState
}

// Object is the API object that the pod, or its template, was made from.
func (p *Pod) Object() *corev1.Pod { return p.object }

// Namespace of the pod.
func (p *Pod) Namespace() string { return p.namespace }

// String is namespace/name.
func (p *Pod) String() string { return p.namespace + "/" + p.Name }

// Pod makes an API object ready for scheduling in this cluster: requests that are missing are its limits, and a
// priority class that admission has not resolved yet is looked up. The object must not be changed afterwards.
func (c *Cluster) Pod(object *corev1.Pod) *Pod {
	if spec := scheduler.WithRequests(&object.Spec); spec != &object.Spec {
		completed := *object
		completed.Spec = *spec
		object = &completed
	}
	if object.Spec.Priority == nil {
		object = c.prioritised(object)
	}
	p := &Pod{Name: object.Name, Created: object.CreationTimestamp.Time, shape: &shape{
		object: object, namespace: object.Namespace, labels: object.Labels,
		demands: c.slots.demands(object), ports: hostPorts(&object.Spec),
	}}
	if p.namespace == "" {
		p.namespace = corev1.NamespaceDefault
	}
	if object.Spec.Priority != nil {
		p.Priority = *object.Spec.Priority
	}
	if object.Status.StartTime != nil {
		p.Started = object.Status.StartTime.Time
	}
	p.want(c.devices)
	p.terms()
	return p
}

// want determines the devices that the pod requests.
func (p *Pod) want(devices *devices) {
	p.wants = devices.of(p.object, p.requests)
	if p.wants == nil || len(p.wants.own) == 0 {
		return
	}
	p.held = slices.Clone(p.held)
	for slot, count := range p.wants.own {
		p.held = p.held.add(make(quantities, slot+1), 0)
		p.held[slot] += count
	}
}

// prioritised gives a pod the priority and the preemption policy of its class, as admission does
// (plugin/pkg/admission/priority).
func (c *Cluster) prioritised(object *corev1.Pod) *corev1.Pod {
	class := c.priorityClasses[object.Spec.PriorityClassName]
	if class == nil {
		return object
	}
	completed := *object
	completed.Spec.Priority = &class.Value
	if completed.Spec.PreemptionPolicy == nil {
		completed.Spec.PreemptionPolicy = class.PreemptionPolicy
	}
	return &completed
}

// Finished reports whether a pod has given its resources back: kube-scheduler does not watch such pods.
func Finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// preempted reports whether kube-scheduler is putting a pod to its end (podTerminatingByPreemption).
func preempted(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp == nil {
		return false
	}
	for i := range pod.Status.Conditions {
		if condition := &pod.Status.Conditions[i]; condition.Type == corev1.DisruptionTarget {
			return condition.Status == corev1.ConditionTrue && condition.Reason == corev1.PodReasonPreemptionByScheduler
		}
	}
	return false
}

// hostPort is a port of a node that a pod needs.
type hostPort struct {
	ip       string // "0.0.0.0": on all addresses
	protocol corev1.Protocol
	port     int32
}

const allAddresses = "0.0.0.0"

// hostPorts are the ports that containers and sidecars need (util.GetHostPorts).
func hostPorts(spec *corev1.PodSpec) []hostPort {
	var ports []hostPort
	add := func(container *corev1.Container) {
		for _, port := range container.Ports {
			if port.HostPort <= 0 {
				continue
			}
			p := hostPort{ip: port.HostIP, protocol: port.Protocol, port: port.HostPort}
			if p.ip == "" {
				p.ip = allAddresses
			}
			if p.protocol == "" {
				p.protocol = corev1.ProtocolTCP
			}
			ports = append(ports, p)
		}
	}
	for i := range spec.InitContainers {
		if sidecar(&spec.InitContainers[i]) {
			add(&spec.InitContainers[i])
		}
	}
	for i := range spec.Containers {
		add(&spec.Containers[i])
	}
	return ports
}

func sidecar(container *corev1.Container) bool {
	return container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// conflicts reports whether two ports cannot be had on one node (framework.HostPortInfo).
func (p hostPort) conflicts(other hostPort) bool {
	return p.port == other.port && p.protocol == other.protocol && (p.ip == other.ip || p.ip == allAddresses || other.ip == allAddresses)
}
