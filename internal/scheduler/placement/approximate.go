package placement

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// unmodelled lists the features of a pod that affect its placement and that are not modelled, a sentence for each.
func (c *Cluster) unmodelled(p *Pod) []string {
	pod := p.object
	var uses []string
	use := func(format string, arguments ...any) {
		uses = append(uses, fmt.Sprintf("pod %s/%s uses ", pod.Namespace, pod.Name)+fmt.Sprintf(format, arguments...))
	}
	spec := &pod.Spec
	for i := range spec.Volumes {
		v := &spec.Volumes[i]
		switch {
		case v.PersistentVolumeClaim != nil && c.volumes == nil:
			use("volume claim %s, which may tie it to a zone or a node", v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil && c.volumes == nil:
			use("ephemeral volume claim %s, which may tie it to a zone or a node", v.Name)
		case v.GCEPersistentDisk != nil, v.AWSElasticBlockStore != nil, v.AzureDisk != nil, v.ISCSI != nil, v.RBD != nil:
			use("volume %s, of which a node may have only so many", v.Name)
		}
	}
	if m := c.mounts(p); m != nil && m.problem != "" {
		use("%s", m.problem)
	}
	for i := range spec.ResourceClaims {
		if c.devices == nil {
			use("resource claim %s, whose devices are not modelled", spec.ResourceClaims[i].Name)
		}
	}
	if p.wants != nil && p.wants.problem != "" {
		use("%s", p.wants.problem)
	}
	if spec.OS != nil && c.hasOtherSystem(spec) {
		use("the operating system %s, and kubelets of others reject it: its node selector should require %s", spec.OS.Name, corev1.LabelOSStable)
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

// hasOtherSystem reports whether a pod may come to a node of another operating system than its own.
func (c *Cluster) hasOtherSystem(spec *corev1.PodSpec) bool {
	if spec.NodeSelector[corev1.LabelOSStable] == string(spec.OS.Name) {
		return false
	}
	return slices.ContainsFunc(c.Nodes(), func(node *corev1.Node) bool { return node.Labels[corev1.LabelOSStable] != string(spec.OS.Name) })
}
