package trainingjob

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	podconstants "sigs.k8s.io/kueue/pkg/controller/jobs/pod/constants"
)

// Explain returns, for every pod that is not running well, the reason in a sentence: the scheduler's own words for a
// pod that fits nowhere, the kubelet's for an image, a volume or a container. Events fill in what a pod's status does
// not say. Pods are answered in order of name; a pod that runs is not mentioned.
func Explain(pods []corev1.Pod, events []corev1.Event) []string {
	sorted := slices.Clone(pods)
	slices.SortFunc(sorted, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	var out []string
	for i := range sorted {
		if reason := PodReason(&sorted[i], events); reason != "" {
			out = append(out, fmt.Sprintf("pod %s: %s", sorted[i].Name, reason))
		}
	}
	return out
}

// WithoutTerminationMessages are the pods without what their containers left at their end, which are the last lines of
// their logs.
func WithoutTerminationMessages(pods []corev1.Pod) []corev1.Pod {
	out := make([]corev1.Pod, len(pods))
	for i := range pods {
		pod := pods[i].DeepCopy()
		for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
			for j := range statuses {
				if t := statuses[j].State.Terminated; t != nil {
					t.Message = ""
				}
			}
		}
		out[i] = *pod
	}
	return out
}

// Blocked returns, for every pod that does not start for a reason that does not go away by itself, the reason in a
// sentence each: an image that cannot be pulled, a container that cannot be made, a pod that fits on no node and
// preempts nobody. Events, of which there may be none, fill in what a pod's status does not say: a volume that cannot
// be mounted.
func Blocked(pods []corev1.Pod, events []corev1.Event) []string {
	return Explain(slices.DeleteFunc(slices.Clone(pods), func(pod corev1.Pod) bool { return !isBlocked(&pod, events) }), events)
}

// MayBeBlocked reports whether only events can explain why one of the pods does not start.
func MayBeBlocked(pods []corev1.Pod) bool {
	return slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return isOnItsNode(&pod) && !isBlocked(&pod, nil) })
}

func isOnItsNode(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodPending && pod.DeletionTimestamp == nil && pod.Spec.NodeName != ""
}

func isBlocked(pod *corev1.Pod, events []corev1.Event) bool {
	if pod.Status.Phase != corev1.PodPending || pod.DeletionTimestamp != nil {
		return false
	}
	if containerReason(pod) != "" {
		return true
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Reason == corev1.PodReasonUnschedulable && pod.Status.NominatedNodeName == ""
		}
	}
	return isOnItsNode(pod) && lastWarning(pod, events) != nil
}

// PodReason reports why a pod is not running well, or "" when it is.
func PodReason(pod *corev1.Pod, events []corev1.Event) string {
	if pod.DeletionTimestamp != nil {
		return terminating(pod)
	}
	switch pod.Status.Phase {
	case corev1.PodPending:
		if reason := containerReason(pod); reason != "" {
			return reason
		}
		return pending(pod, events)
	case corev1.PodFailed:
		return failed(pod)
	case corev1.PodRunning, corev1.PodUnknown:
		return containerReason(pod)
	default:
		return ""
	}
}

func pending(pod *corev1.Pod, events []corev1.Event) string {
	if gates := pod.Spec.SchedulingGates; len(gates) > 0 {
		if gates[0].Name == podconstants.SchedulingGateName {
			return fmt.Sprintf("is queued: Kueue has not admitted it to queue %s yet", pod.Labels[queueNameLabel])
		}
		return fmt.Sprintf("waits for scheduling gate %q to be removed", gates[0].Name)
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			reason := "cannot be scheduled"
			if c.Message != "" {
				reason += ": " + c.Message
			}
			if pod.Status.NominatedNodeName != "" {
				reason += fmt.Sprintf("; pods of lower priority are being preempted for it on node %s", pod.Status.NominatedNodeName)
			}
			return reason
		}
	}
	if e := lastWarning(pod, events); e != nil {
		return fmt.Sprintf("%s: %s", e.Reason, e.Message)
	}
	if pod.Spec.NodeName != "" {
		return fmt.Sprintf("starts on node %s", pod.Spec.NodeName)
	}
	return "waits for the scheduler"
}

// remedies say what to do about a container's waiting reasons that do not say it themselves.
var remedies = map[string]string{
	"ErrImagePull":               "check the image's name, and image_pull_secrets for a private registry",
	"ImagePullBackOff":           "check the image's name, and image_pull_secrets for a private registry",
	"InvalidImageName":           "correct the image's name",
	"CreateContainerConfigError": "check that the Secrets and ConfigMaps it refers to exist",
}

func containerReason(pod *corev1.Pod) string {
	for _, s := range append(slices.Clone(pod.Status.InitContainerStatuses), pod.Status.ContainerStatuses...) {
		switch {
		case s.State.Waiting != nil && !slices.Contains([]string{"", "ContainerCreating", "PodInitializing"}, s.State.Waiting.Reason):
			w := s.State.Waiting
			reason := fmt.Sprintf("container %s: %s", s.Name, w.Reason)
			if w.Message != "" {
				reason += ": " + w.Message
			}
			if remedy := remedies[w.Reason]; remedy != "" {
				reason += "; " + remedy
			}
			return reason
		case s.State.Terminated != nil && s.State.Terminated.ExitCode != 0:
			return terminated(pod, s)
		}
	}
	return ""
}

func failed(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return strings.TrimSuffix(fmt.Sprintf("was taken away (%s): %s", c.Reason, c.Message), ": ")
		}
	}
	if message, evicted := EvictionMessage(pod); evicted {
		return strings.TrimSuffix("was taken away by its queue: "+message, ": ")
	}
	if reason := containerReason(pod); reason != "" {
		return reason
	}
	return strings.TrimSuffix(fmt.Sprintf("failed: %s: %s", pod.Status.Reason, pod.Status.Message), ": ")
}

func terminated(pod *corev1.Pod, s corev1.ContainerStatus) string {
	t := s.State.Terminated
	if t.Reason == "OOMKilled" {
		limit := "none"
		for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			if q, ok := c.Resources.Limits[corev1.ResourceMemory]; ok && c.Name == s.Name {
				limit = q.String()
			}
		}
		return fmt.Sprintf("container %s used more memory than its limit (%s) and was killed; raise resources.limits.memory", s.Name, limit)
	}
	reason := fmt.Sprintf("container %s exited with code %d", s.Name, t.ExitCode)
	if t.Reason != "" && t.Reason != "Error" {
		reason += " (" + t.Reason + ")"
	}
	if message := strings.TrimSpace(t.Message); message != "" {
		reason += ": " + message
	}
	return reason
}

func terminating(pod *corev1.Pod) string {
	if len(pod.Finalizers) > 0 {
		return fmt.Sprintf("is being deleted and waits for finalizer %s", strings.Join(pod.Finalizers, ", "))
	}
	if pod.Spec.NodeName != "" {
		return fmt.Sprintf("is being deleted on node %s", pod.Spec.NodeName)
	}
	return "is being deleted"
}

func lastWarning(pod *corev1.Pod, events []corev1.Event) *corev1.Event {
	var last *corev1.Event
	for i, e := range events {
		if e.Type != corev1.EventTypeWarning || e.InvolvedObject.UID != pod.UID {
			continue
		}
		if last == nil || !eventTime(e).Before(eventTime(*last)) {
			last = &events[i]
		}
	}
	return last
}
