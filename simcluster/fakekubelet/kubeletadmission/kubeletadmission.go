// Package kubeletadmission decides whether a pod fits on its node, with the kubelet's own code. It is a separate
// package because of that code's size: only the program links it, not the packages that start clusters.
package kubeletadmission

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	kubelet "k8s.io/kubernetes/pkg/kubelet/lifecycle"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Admit reports why a kubelet rejects a pod beside others that it has admitted; reason is empty where it admits the
// pod. Unlike a kubelet it evicts nobody for critical pods.
func Admit(node *corev1.Node, pod *corev1.Pod, others []*corev1.Pod) (reason, message string) {
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
