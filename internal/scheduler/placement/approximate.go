package placement

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// unmodelled says what a pod uses by which kube-scheduler may decide differently.
func unmodelled(pod *corev1.Pod) []string {
	var uses []string
	use := func(format string, arguments ...any) {
		uses = append(uses, fmt.Sprintf("pod %s/%s uses ", pod.Namespace, pod.Name)+fmt.Sprintf(format, arguments...))
	}
	spec := &pod.Spec
	for i := range spec.Volumes {
		v := &spec.Volumes[i]
		switch {
		case v.PersistentVolumeClaim != nil:
			use("volume claim %s, which may tie it to a zone or a node", v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			use("ephemeral volume claim %s, which may tie it to a zone or a node", v.Name)
		case v.GCEPersistentDisk != nil, v.AWSElasticBlockStore != nil, v.AzureDisk != nil, v.ISCSI != nil, v.RBD != nil, v.CSI != nil:
			use("volume %s, of which a node may have only so many", v.Name)
		}
	}
	for i := range spec.ResourceClaims {
		use("resource claim %s, whose devices are not modelled", spec.ResourceClaims[i].Name)
	}
	if spec.HostNetwork && spec.HostUsers != nil && !*spec.HostUsers {
		use("the host's network with users of its own, which not every node can give")
	}
	for i := range spec.Containers {
		for _, rule := range spec.Containers[i].RestartPolicyRules {
			if rule.Action == corev1.ContainerRestartRuleActionRestartAllContainers {
				use("rules that restart all containers, which not every node can give")
			}
		}
	}
	if spec.SchedulingGroup != nil {
		use("a scheduling group, which is scheduled as a whole")
	}
	return uses
}
