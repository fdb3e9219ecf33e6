package fakekubelet

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubelet "k8s.io/kubernetes/pkg/kubelet/lifecycle"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// rejection is why a kubelet rejects a pod beside others that it has admitted; reason is empty where it admits the
// pod. Unlike a kubelet this evicts nobody for critical pods.
func rejection(node *corev1.Node, pod *corev1.Pod, others []*corev1.Pod) (reason, message string) {
	handler := kubelet.NewPredicateAdmitHandler(
		func(context.Context, bool) (*corev1.Node, error) { return node, nil },
		kubelet.NewAdmissionFailureHandlerStub(),
		func(*framework.NodeInfo, *kubelet.PodAdmitAttributes) error { return nil })
	result := handler.Admit(context.Background(), &kubelet.PodAdmitAttributes{Pod: pod, OtherPods: others})
	if result.Admit {
		return "", ""
	}
	return result.Reason, result.Message
}

// admit reports why a node does not admit a pod: the scheduler does not see a pod whose spec names its node. nil: it
// is admitted. a.mu is held, so that pods are admitted one after the other, in the order in which they come.
func (a *agent) admit(ctx context.Context, n *simulatedNode, pod *corev1.Pod) *ending {
	if finished(pod) || pod.Status.StartTime != nil { // it was admitted before the agent was started again
		return nil
	}
	var others []*corev1.Pod
	for uid, o := range a.owners {
		if o.node != n || o.rejection != nil {
			continue
		}
		if other, err := a.pods.Pods(o.namespace).Get(o.podName); err == nil && other.UID == uid && !finished(other) {
			others = append(others, other)
		}
	}
	node, err := a.nodeObjects.Get(n.spec.Name)
	if err == nil {
		if reason, _ := rejection(node, pod, others); reason == "" {
			return nil
		}
	}
	// Here the node's object is somebody else's, too: what has changed of it may not have come yet.
	if node, err = a.client.CoreV1().Nodes().Get(ctx, n.spec.Name, metav1.GetOptions{}); err != nil {
		a.log.WarnContext(ctx, "a pod is admitted as its node was not read", "pod", pod.Namespace+"/"+pod.Name, "error", err)
		return nil
	}
	reason, message := rejection(node, pod, others)
	if reason == "" {
		return nil
	}
	a.log.InfoContext(ctx, "a pod is rejected", "pod", pod.Namespace+"/"+pod.Name, "node", n.spec.Name, "reason", reason)
	return &ending{reason: reason, message: "Pod was rejected: " + message}
}

// reject ends a pod that is not admitted, before anything of it starts.
func (o *owner) reject() {
	if o.rejection == nil {
		return
	}
	o.life.ending, o.life.over, o.life.rejected = o.rejection, true, true
	o.events.Event(o.life.pod, corev1.EventTypeWarning, o.rejection.reason, o.rejection.message)
}
