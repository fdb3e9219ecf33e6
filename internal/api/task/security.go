package task

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

// security is the security context of the task's pods: what the task says, and for the rest what the Pod Security
// Standard "restricted" wants as far as the task's image allows it. Only its author knows whether an image does without
// root, and one that does not needs root's capabilities, too, to install packages for example. So the filter of system
// calls is there in any case, and all of "restricted" where the task says that it is not root.
func (t Task) security() *SecurityContext {
	var s SecurityContext
	if t.SecurityContext != nil {
		s = *t.SecurityContext
	}
	if s.SeccompProfile == nil {
		s.SeccompProfile = &trainingjob.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	}
	if !isNonRoot(s) {
		return &s
	}
	if s.RunAsNonRoot == nil {
		s.RunAsNonRoot = new(true)
	}
	if s.AllowPrivilegeEscalation == nil {
		s.AllowPrivilegeEscalation = new(false)
	}
	capabilities := trainingjob.Capabilities{}
	if s.Capabilities != nil {
		capabilities = *s.Capabilities
	}
	if len(capabilities.Drop) == 0 {
		capabilities.Drop = []corev1.Capability{"ALL"}
	}
	s.Capabilities = &capabilities
	return &s
}

// isNonRoot reports whether the task does without root by its own account.
func isNonRoot(s SecurityContext) bool {
	if s.RunAsNonRoot != nil {
		return *s.RunAsNonRoot
	}
	return s.RunAsUser != nil && *s.RunAsUser != 0
}
