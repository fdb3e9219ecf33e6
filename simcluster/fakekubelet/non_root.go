package fakekubelet

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/securitycontext"
)

// verifyRunAsNonRoot refuses what a kubelet refuses (k8s.io/kubernetes v1.36,
// pkg/kubelet/kuberuntime/security_context.go), in its words. imageUser stands for the user that an image names: here
// it is the user who runs the processes. A runAsUser is checked, but the processes do not run under it: this machine's
// files belong to the user who started the cluster.
func verifyRunAsNonRoot(pod *corev1.Pod, c *corev1.Container, imageUser int) error {
	effective := securitycontext.DetermineEffectiveSecurityContext(pod, c)
	if effective == nil || effective.RunAsNonRoot == nil || !*effective.RunAsNonRoot {
		return nil
	}
	about := fmt.Sprintf("(pod: \"%s_%s(%s)\", container: %s)", pod.Name, pod.Namespace, pod.UID, c.Name)
	switch user := effective.RunAsUser; {
	case user != nil && *user == 0:
		return fmt.Errorf("container's runAsUser breaks non-root policy %s", about)
	case user == nil && imageUser == 0:
		return fmt.Errorf("container has runAsNonRoot and image will run as root %s", about)
	}
	return nil
}
