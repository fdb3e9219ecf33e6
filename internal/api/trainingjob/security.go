package trainingjob

import (
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// SecurityContext is what a user may say about the identity and the rights of a pod's processes: of the pod what a
// pod's securityContext has, and of all its containers what only a container's has. What is absent stays as it is
// without it.
type SecurityContext struct {
	RunAsUser          *int64          `json:"run_as_user,omitempty"`
	RunAsGroup         *int64          `json:"run_as_group,omitempty"`
	RunAsNonRoot       *bool           `json:"run_as_non_root,omitempty"`
	FSGroup            *int64          `json:"fs_group,omitempty"`
	SupplementalGroups []int64         `json:"supplemental_groups,omitempty"` // in ascending order
	SeccompProfile     *SeccompProfile `json:"seccomp_profile,omitempty"`

	ReadOnlyRootFilesystem   *bool         `json:"read_only_root_filesystem,omitempty"`
	AllowPrivilegeEscalation *bool         `json:"allow_privilege_escalation,omitempty"`
	Capabilities             *Capabilities `json:"capabilities,omitempty"`
}

// SeccompProfile is a container runtime's filter of system calls.
type SeccompProfile struct {
	Type             corev1.SeccompProfileType `json:"type"`
	LocalhostProfile string                    `json:"localhost_profile,omitempty"` // with type Localhost: a file of the node
}

// Capabilities are those of Linux, without "CAP_" and in order of name. Those that are absent stay as they are.
type Capabilities struct {
	Add  []corev1.Capability `json:"add,omitempty"`
	Drop []corev1.Capability `json:"drop,omitempty"`
}

// OfPod is a pod's security context with what s says on top; base may be nil, and is not changed.
func (s *SecurityContext) OfPod(base *corev1.PodSecurityContext) *corev1.PodSecurityContext {
	if s == nil || s.RunAsUser == nil && s.RunAsGroup == nil && s.RunAsNonRoot == nil && s.FSGroup == nil && s.SeccompProfile == nil && len(s.SupplementalGroups) == 0 {
		return base
	}
	out := base.DeepCopy()
	if out == nil {
		out = &corev1.PodSecurityContext{}
	}
	overlay(&out.RunAsUser, s.RunAsUser)
	overlay(&out.RunAsGroup, s.RunAsGroup)
	overlay(&out.RunAsNonRoot, s.RunAsNonRoot)
	overlay(&out.FSGroup, s.FSGroup)
	if len(s.SupplementalGroups) > 0 {
		out.SupplementalGroups = slices.Clone(s.SupplementalGroups)
	}
	if p := s.SeccompProfile; p != nil {
		out.SeccompProfile = &corev1.SeccompProfile{Type: p.Type}
		if p.LocalhostProfile != "" {
			out.SeccompProfile.LocalhostProfile = new(p.LocalhostProfile)
		}
	}
	return out
}

// OfContainer is a container's security context with what s says on top; base may be nil, and is not changed.
func (s *SecurityContext) OfContainer(base *corev1.SecurityContext) *corev1.SecurityContext {
	if s == nil || s.ReadOnlyRootFilesystem == nil && s.AllowPrivilegeEscalation == nil && s.Capabilities == nil {
		return base
	}
	out := base.DeepCopy()
	if out == nil {
		out = &corev1.SecurityContext{}
	}
	overlay(&out.ReadOnlyRootFilesystem, s.ReadOnlyRootFilesystem)
	overlay(&out.AllowPrivilegeEscalation, s.AllowPrivilegeEscalation)
	if c := s.Capabilities; c != nil {
		if out.Capabilities == nil {
			out.Capabilities = &corev1.Capabilities{}
		}
		if len(c.Add) > 0 {
			out.Capabilities.Add = slices.Clone(c.Add)
		}
		if len(c.Drop) > 0 {
			out.Capabilities.Drop = slices.Clone(c.Drop)
		}
	}
	return out
}

func overlay[T any](to **T, with *T) {
	if with != nil {
		*to = new(*with)
	}
}

// securityOf is what a template's pod and one of its containers say, as a SecurityContext says it.
func securityOf(pod *corev1.PodSecurityContext, container *corev1.SecurityContext) *SecurityContext {
	s := &SecurityContext{}
	if pod != nil {
		s.RunAsUser, s.RunAsGroup, s.RunAsNonRoot, s.FSGroup, s.SupplementalGroups = pod.RunAsUser, pod.RunAsGroup, pod.RunAsNonRoot, pod.FSGroup, pod.SupplementalGroups
		if p := pod.SeccompProfile; p != nil {
			s.SeccompProfile = &SeccompProfile{Type: p.Type}
			if p.LocalhostProfile != nil {
				s.SeccompProfile.LocalhostProfile = *p.LocalhostProfile
			}
		}
	}
	if container != nil {
		s.ReadOnlyRootFilesystem, s.AllowPrivilegeEscalation = container.ReadOnlyRootFilesystem, container.AllowPrivilegeEscalation
		if c := container.Capabilities; c != nil {
			s.Capabilities = &Capabilities{Add: c.Add, Drop: c.Drop}
		}
	}
	return s
}

// Problems are what the API server or the kubelet would refuse. The field is the attribute's, and nonRoot reports
// whether the pod may not run as root without it.
func (s *SecurityContext) Problems(field string, nonRoot bool) []Problem {
	var p problems
	if s == nil {
		return p
	}
	for _, id := range []struct {
		name string
		is   *int64
	}{{"run_as_user", s.RunAsUser}, {"run_as_group", s.RunAsGroup}, {"fs_group", s.FSGroup}} {
		if id.is != nil && (*id.is < 0 || *id.is > math.MaxInt32) {
			p.add(field+"."+id.name, "is %d; it must be 0 to %d", *id.is, math.MaxInt32)
		}
	}
	for _, group := range s.SupplementalGroups {
		if group < 0 || group > math.MaxInt32 {
			p.add(field+".supplemental_groups", "has %d; a group is 0 to %d", group, math.MaxInt32)
		}
	}
	hint := ""
	if s.RunAsNonRoot != nil {
		nonRoot, hint = *s.RunAsNonRoot, "; set another user, or run_as_non_root = false"
	} else {
		hint = " without it; set another user, or run_as_non_root = false"
	}
	if s.RunAsUser != nil && *s.RunAsUser == 0 && nonRoot {
		p.add(field+".run_as_user", "is 0, which is root, and run_as_non_root is true%s", hint)
	}
	if c := s.Capabilities; c != nil {
		for _, of := range []struct {
			name string
			are  []corev1.Capability
		}{{"add", c.Add}, {"drop", c.Drop}} {
			for _, capability := range of.are {
				if problem := capabilityProblem(string(capability)); problem != "" {
					p.add(field+".capabilities."+of.name, "has %q; %s", capability, problem)
				}
			}
		}
	}
	if profile := s.SeccompProfile; profile != nil {
		switch local := profile.Type == corev1.SeccompProfileTypeLocalhost; {
		case local && profile.LocalhostProfile == "":
			p.add(field+".seccomp_profile.localhost_profile", "is not set; with type = \"Localhost\" name the profile's file below the kubelet's directory of seccomp profiles")
		case !local && profile.LocalhostProfile != "":
			p.add(field+".seccomp_profile.localhost_profile", "is %q, and type is %q; leave it out, or set type = \"Localhost\"", profile.LocalhostProfile, profile.Type)
		}
	}
	return p
}

func capabilityProblem(name string) string {
	switch bare, prefixed := strings.CutPrefix(name, "CAP_"); {
	case prefixed:
		return fmt.Sprintf("Kubernetes writes it without CAP_: %q", bare)
	case name == "" || strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "":
		return "a capability is written in capitals, such as \"IPC_LOCK\", or \"ALL\""
	}
	return ""
}
