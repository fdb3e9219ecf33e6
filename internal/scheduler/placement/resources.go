package placement

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcehelpers "k8s.io/component-helpers/resource"

	"k8s.io/apimachinery/pkg/api/resource"
)

// quantities holds one amount per resource, at the resource's slot: millicores of cpu, else units (bytes). A resource
// beyond its end is zero.
type quantities []int64

const (
	slotCPU = iota
	slotMemory
	slotEphemeral
	firstScalar
)

func (q quantities) at(slot int) int64 {
	if slot < len(q) {
		return q[slot]
	}
	return 0
}

// add adds other times sign, and is the sum: q itself when it is long enough.
func (q quantities) add(other quantities, sign int64) quantities {
	for len(q) < len(other) {
		q = append(q, 0)
	}
	for i, amount := range other {
		q[i] += sign * amount
	}
	return q
}

// slots gives every resource name a small number. It grows with the names that it is called with.
type slots struct {
	of    map[corev1.ResourceName]int
	names []corev1.ResourceName
	rules rules
}

func newSlots(rules rules) *slots {
	s := &slots{of: map[corev1.ResourceName]int{}, rules: rules}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		s.slot(name)
	}
	return s
}

func (s *slots) slot(name corev1.ResourceName) int {
	slot, known := s.of[name]
	if !known {
		slot = len(s.names)
		s.of[name] = slot
		s.names = append(s.names, name)
	}
	return slot
}

// quantities reads a resource list as kube-scheduler does: it omits resources that do not affect scheduling (the number
// of pods is separate; framework.Resource, util.IsScalarResourceName).
func (s *slots) quantities(list corev1.ResourceList) quantities {
	q := make(quantities, firstScalar)
	for name, amount := range list {
		switch {
		case name == corev1.ResourceCPU:
			q[slotCPU] = amount.MilliValue()
		case name == corev1.ResourceMemory:
			q[slotMemory] = amount.Value()
		case name == corev1.ResourceEphemeralStorage:
			q[slotEphemeral] = amount.Value()
		case scalar(name):
			slot := s.slot(name)
			q = q.add(make(quantities, slot+1), 0)
			q[slot] = amount.Value()
		}
	}
	return q
}

// scalar reports whether kube-scheduler counts a resource beyond cpu, memory and ephemeral storage: extended and
// prefixed ones, huge pages, attachable volumes.
func scalar(name corev1.ResourceName) bool {
	return strings.Contains(string(name), "/") || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) ||
		strings.HasPrefix(string(name), corev1.ResourceAttachableVolumesPrefix)
}

// The values that a container without requests has in scores (util.DefaultMilliCPURequest, DefaultMemoryRequest).
var defaultRequests = [2]int64{slotCPU: 100, slotMemory: 200 << 20}

func defaultRequestList() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(defaultRequests[slotCPU], resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(defaultRequests[slotMemory], resource.DecimalSI),
	}
}

// demands are a pod's requests, in the several readings of kube-scheduler.
type demands struct {
	// requests decides whether it fits (NodeResourcesFit) and how it balances (NodeResourcesBalancedAllocation).
	requests quantities
	// held is the resources that the pod takes from its node: a resize in progress counts.
	held quantities
	// heldForScore is its cpu and memory on a node it is bound to, for least-allocated scoring, which counts containers
	// without requests too.
	heldForScore [2]int64
	// score is its own cpu and memory in least-allocated scoring. The plugin leaves pod-level resources out of it (its
	// scorer is made without that feature).
	score [2]int64
}

func (s *slots) demands(pod *corev1.Pod) demands {
	if ordinary(pod) {
		return s.ordinaryDemands(&pod.Spec)
	}
	return s.allDemands(pod)
}

// ordinary reports whether a pod is its containers and no more: no init containers, overhead, pod-level resources or
// resize. Nearly all are, and for them the sums below are the same as those of allDemands at a tenth of the cost.
func ordinary(pod *corev1.Pod) bool {
	spec := &pod.Spec
	if len(spec.InitContainers) > 0 || len(spec.Overhead) > 0 || spec.Resources != nil || resized(pod) {
		return false
	}
	return len(spec.Containers) < 2 || !slices.ContainsFunc(spec.Containers, func(c corev1.Container) bool { return fractional(c.Resources.Requests) })
}

// fractional reports whether an amount is not whole (memory: 100m). Sums are taken first and rounded then.
func fractional(list corev1.ResourceList) bool {
	for name, amount := range list {
		scale := resource.Milli
		if name == corev1.ResourceCPU {
			scale = resource.Micro
		}
		if amount.ScaledValue(scale)%1000 != 0 {
			return true
		}
	}
	return false
}

func (s *slots) ordinaryDemands(spec *corev1.PodSpec) demands {
	var d demands
	for i := range spec.Containers {
		list := spec.Containers[i].Resources.Requests
		requested := s.quantities(list)
		if i == 0 {
			d.requests = requested
		} else {
			d.requests = d.requests.add(requested, 1)
		}
		for slot, name := range s.names[:len(d.score)] {
			amount := requested[slot]
			if _, given := list[name]; !given {
				amount = defaultRequests[slot]
			}
			d.score[slot] += amount
		}
	}
	if d.requests == nil {
		d.requests = s.quantities(nil)
	}
	d.held, d.heldForScore = d.requests, d.score
	return d
}

func (s *slots) allDemands(pod *corev1.Pod) demands {
	type options = resourcehelpers.PodResourcesOptions
	requests := resourcehelpers.PodRequests(pod, options{})
	d := demands{requests: s.quantities(requests), score: cpuAndMemory(resourcehelpers.PodRequests(pod, options{
		NonMissingContainerRequests: defaultRequestList(), SkipPodLevelResources: true,
	}))}
	held, holder, heldRequests := options{UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: true}, pod, requests
	if resized(pod) {
		if !s.rules.resizeByPod {
			held, holder = options{}, effective(pod)
		}
		heldRequests = resourcehelpers.PodRequests(holder, held)
	}
	d.held = s.quantities(heldRequests)
	// framework.PodInfo.CalculateResource
	if !resourcehelpers.IsPodLevelRequestsSet(pod) {
		held.NonMissingContainerRequests = defaultRequestList()
	} else {
		held.NonMissingContainerRequests = corev1.ResourceList{}
		for name, amount := range defaultRequestList() {
			if _, ok := heldRequests[name]; !ok {
				held.NonMissingContainerRequests[name] = amount
			}
		}
	}
	d.heldForScore = cpuAndMemory(resourcehelpers.PodRequests(holder, held))
	return d
}

// resized reports whether the status of a pod may give it other resources than its spec.
func resized(pod *corev1.Pod) bool {
	differs := func(containers []corev1.Container, statuses []corev1.ContainerStatus) bool {
		for i := range statuses {
			status := &statuses[i]
			if status.Resources == nil && status.AllocatedResources == nil {
				continue
			}
			of := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == status.Name })
			if of < 0 {
				continue
			}
			requested := containers[of].Resources.Requests
			if status.Resources != nil && !equalResources(status.Resources.Requests, requested) ||
				status.AllocatedResources != nil && !equalResources(status.AllocatedResources, requested) {
				return true
			}
		}
		return false
	}
	return pod.Status.Resources != nil || pod.Status.AllocatedResources != nil || resourcehelpers.IsPodResizeInfeasible(pod) ||
		differs(pod.Spec.Containers, pod.Status.ContainerStatuses) || differs(pod.Spec.InitContainers, pod.Status.InitContainerStatuses)
}

// effective is a pod that requests what a resized one holds by the rules of Kubernetes 1.36, which look at each
// container by itself (component-helpers v0.36, determineEffectiveRequests).
func effective(pod *corev1.Pod) *corev1.Pod {
	infeasible := resourcehelpers.IsPodResizeInfeasible(pod)
	requests := func(requested, actual, allocated corev1.ResourceList) corev1.ResourceList {
		if infeasible {
			return greatest(actual, allocated)
		}
		return greatest(requested, actual, allocated)
	}
	containers := func(containers []corev1.Container, statuses []corev1.ContainerStatus, counts func(*corev1.Container) bool) []corev1.Container {
		containers = slices.Clone(containers)
		for i := range containers {
			c := &containers[i]
			of := slices.IndexFunc(statuses, func(s corev1.ContainerStatus) bool { return s.Name == c.Name })
			if of >= 0 && statuses[of].Resources != nil && counts(c) {
				c.Resources.Requests = requests(c.Resources.Requests, statuses[of].Resources.Requests, statuses[of].AllocatedResources)
			}
		}
		return containers
	}
	copied := *pod
	spec, status := &copied.Spec, &pod.Status
	spec.Containers = containers(spec.Containers, status.ContainerStatuses, func(*corev1.Container) bool { return true })
	spec.InitContainers = containers(spec.InitContainers, status.InitContainerStatuses, func(c *corev1.Container) bool {
		return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
	})
	if resourcehelpers.IsPodLevelRequestsSet(pod) && status.Resources != nil {
		held := requests(spec.Resources.Requests, status.Resources.Requests, status.AllocatedResources)
		podLevel := corev1.ResourceList{}
		for name := range spec.Resources.Requests {
			podLevel[name] = held[name]
		}
		spec.Resources = &corev1.ResourceRequirements{Requests: podLevel}
	}
	return &copied
}

// greatest has the greatest amount of each resource.
func greatest(lists ...corev1.ResourceList) corev1.ResourceList {
	most := corev1.ResourceList{}
	for _, list := range lists {
		for name, amount := range list {
			if known, has := most[name]; !has || amount.Cmp(known) > 0 {
				most[name] = amount
			}
		}
	}
	return most
}

func equalResources(a, b corev1.ResourceList) bool {
	if len(a) != len(b) {
		return false
	}
	for name, amount := range a {
		if other, has := b[name]; !has || amount.Cmp(other) != 0 {
			return false
		}
	}
	return true
}

func cpuAndMemory(list corev1.ResourceList) [2]int64 {
	return [2]int64{list.Cpu().MilliValue(), list.Memory().Value()}
}
