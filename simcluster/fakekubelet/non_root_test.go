package fakekubelet

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestVerifyRunAsNonRootRefusesRootAsAKubeletDoes(t *testing.T) {
	for name, test := range map[string]struct {
		pod       *corev1.PodSecurityContext
		container *corev1.SecurityContext
		imageUser int
		want      string
	}{
		"nothing is asked for":                        {imageUser: 0},
		"an image of another user":                    {pod: &corev1.PodSecurityContext{RunAsNonRoot: new(true)}, imageUser: 1000},
		"an image of root":                            {pod: &corev1.PodSecurityContext{RunAsNonRoot: new(true)}, want: "image will run as root"},
		"a user of the pod's":                         {pod: &corev1.PodSecurityContext{RunAsNonRoot: new(true), RunAsUser: new(int64(65532))}},
		"user 0 of the pod's":                         {pod: &corev1.PodSecurityContext{RunAsNonRoot: new(true), RunAsUser: new(int64(0))}, imageUser: 1000, want: "breaks non-root policy"},
		"user 0 of the container's":                   {pod: &corev1.PodSecurityContext{RunAsNonRoot: new(true), RunAsUser: new(int64(1))}, container: &corev1.SecurityContext{RunAsUser: new(int64(0))}, want: "breaks non-root policy"},
		"a container that may be root in such a pod":  {pod: &corev1.PodSecurityContext{RunAsNonRoot: new(true)}, container: &corev1.SecurityContext{RunAsNonRoot: new(false)}},
		"a container that may not, in a pod that may": {container: &corev1.SecurityContext{RunAsNonRoot: new(true)}, want: "image will run as root"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{SecurityContext: test.pod}}
			err := verifyRunAsNonRoot(pod, &corev1.Container{Name: "main", SecurityContext: test.container}, test.imageUser)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%v, expected %q", err, test.want)
			}
		})
	}
}
