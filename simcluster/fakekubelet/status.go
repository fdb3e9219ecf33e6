package fakekubelet

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	kubelet "k8s.io/kubernetes/pkg/kubelet/status"
)

// podAddresses are what a pod's status says about the network; podIP is "" until
// the pod has an address.
type podAddresses struct{ podIP, hostIP string }

// podStatus computes the status that a kubelet would write, after one with the conditions in previous.
func podStatus(l *lifecycle, addresses podAddresses, previous []corev1.PodCondition, now time.Time) corev1.PodStatus {
	started := metav1.NewTime(l.startedAt).Rfc3339Copy()
	status := corev1.PodStatus{
		ObservedGeneration: l.pod.Generation,
		Phase:              podPhase(l),
		HostIP:             addresses.hostIP,
		HostIPs:            []corev1.HostIP{{IP: addresses.hostIP}},
		StartTime:          &started,
	}
	if addresses.podIP != "" {
		status.PodIP = addresses.podIP
		status.PodIPs = []corev1.PodIP{{IP: addresses.podIP}}
	}
	if l.ending != nil {
		status.Reason, status.Message = l.ending.reason, l.ending.message
	}
	if l.over && status.Reason == "" {
		// Another party's verdict (an eviction's) is kept.
		status.Reason, status.Message = l.pod.Status.Reason, l.pod.Status.Message
	}
	if l.rejected {
		status.HostIP, status.HostIPs = "", nil
		return status // its containers have none
	}
	for i := range l.containers {
		c := &l.containers[i]
		s := containerStatus(l, c, now)
		if c.kind == mainContainer {
			status.ContainerStatuses = append(status.ContainerStatuses, s)
		} else {
			status.InitContainerStatuses = append(status.InitContainerStatuses, s)
		}
	}
	status.Conditions = podConditions(l, status, previous, now)
	return status
}

func containerStatus(l *lifecycle, c *containerState, now time.Time) corev1.ContainerStatus {
	running := c.running()
	status := corev1.ContainerStatus{
		Name:         c.spec.Name,
		Image:        c.spec.Image,
		ContainerID:  c.id,
		RestartCount: c.restarts,
		State:        c.state,
		Started:      &running,
		Ready:        running && c.kind != initContainer || c.kind == initContainer && c.succeeded(),
	}
	if c.id != "" {
		status.ImageID = c.spec.Image
	}
	status.LastTerminationState.Terminated = c.last
	if c.state.Waiting == nil && !running && !c.terminated() {
		reason := reasonContainerCreating
		if c.kind == mainContainer && len(l.pod.Spec.InitContainers) > 0 || c.kind != mainContainer && !firstUnfinished(l, c) {
			reason = reasonPodInitializing
		}
		status.State.Waiting = &corev1.ContainerStateWaiting{Reason: reason}
	}
	if l.over && status.State.Terminated == nil {
		status.State = endedWithoutRunning(c, now)
	}
	return status
}

// firstUnfinished reports whether c is the init container whose turn it is.
func firstUnfinished(l *lifecycle, c *containerState) bool {
	for i := range l.containers {
		other := &l.containers[i]
		if other == c {
			return true
		}
		if !other.succeeded() && (other.kind != sidecarContainer || !other.started) {
			return false
		}
	}
	return true
}

// endedWithoutRunning is the final state of a container that has none of its own
// when its pod ends: its last run's where there was one.
func endedWithoutRunning(c *containerState, now time.Time) corev1.ContainerState {
	if c.last != nil {
		return corev1.ContainerState{Terminated: c.last}
	}
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode:   exitCodeNeverRan,
		Reason:     reasonStatusUnknown,
		Message:    "The container could not be located when the pod was terminated",
		FinishedAt: metav1.NewTime(now).Rfc3339Copy(),
	}}
}

// podPhase follows the kubelet's getPhase (v1.36).
func podPhase(l *lifecycle) corev1.PodPhase {
	if finished(l.pod) {
		return l.pod.Status.Phase // a final phase is final
	}
	if l.ending != nil && l.ending.reason != "" && l.over {
		return corev1.PodFailed
	}
	var waiting, running, stopped, succeeded, mains int
	for i := range l.containers {
		c := &l.containers[i]
		if c.kind != mainContainer {
			continue
		}
		mains++
		switch {
		case c.running():
			running++
		case c.terminated():
			stopped++
			if c.succeeded() {
				succeeded++
			}
		case c.last != nil:
			stopped++
		default:
			waiting++
		}
	}
	switch {
	case l.over && succeeded == mains:
		return corev1.PodSucceeded
	case l.over:
		return corev1.PodFailed
	case waiting > 0:
		return corev1.PodPending
	default:
		return corev1.PodRunning
	}
}

// podConditions are the conditions of a kubelet. Those that do not change keep the times they have in previous.
func podConditions(l *lifecycle, status corev1.PodStatus, previous []corev1.PodCondition, now time.Time) []corev1.PodCondition {
	old, phase := &corev1.PodStatus{Conditions: previous}, status.Phase
	statuses := slices.Concat(status.InitContainerStatuses, status.ContainerStatuses)
	hasSandbox := corev1.ConditionFalse
	if status.PodIP != "" && !l.over {
		hasSandbox = corev1.ConditionTrue
	}
	conditions := []corev1.PodCondition{
		{Type: corev1.PodReadyToStartContainers, Status: hasSandbox, ObservedGeneration: l.pod.Generation},
		kubelet.GeneratePodInitializedCondition(l.pod, old, statuses, phase),
		kubelet.GenerateContainersReadyCondition(l.pod, old, statuses, phase),
		kubelet.GeneratePodReadyCondition(l.pod, old, l.pod.Status.Conditions, statuses, phase),
	}
	for i := range conditions {
		c := &conditions[i]
		c.LastTransitionTime = metav1.NewTime(now).Rfc3339Copy()
		if _, before := podutil.GetPodConditionFromList(previous, c.Type); before != nil && before.Status == c.Status {
			c.LastTransitionTime = before.LastTransitionTime
		}
	}
	return conditions
}
