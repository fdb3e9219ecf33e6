package podadmission

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler"
)

// Cluster is the objects by which pods are admitted. Nothing in it is changed.
type Cluster struct {
	// Namespaces is nil where they could not be read: then every namespace counts as there, and has no labels.
	Namespaces      []*corev1.Namespace
	PriorityClasses []*schedulingv1.PriorityClass
	RuntimeClasses  []*nodev1.RuntimeClass
	LimitRanges     []*corev1.LimitRange
	Quotas          []*corev1.ResourceQuota
}

// Refusal is the reason why an API server rejects a pod.
type Refusal struct {
	// Message is in the words of the API server.
	Message string
	// Passing is true if the pod is admitted after others have ended: a quota is exhausted.
	Passing bool
	// Quota is true if a ResourceQuota rejects the pod.
	Quota bool
	// Uncounted is the name of the quota that rejects it, if that is planned and has not been counted yet.
	Uncounted string
}

func (r *Refusal) Error() string { return r.Message }

func refuse(format string, args ...any) *Refusal {
	return &Refusal{Message: fmt.Sprintf(format, args...)}
}

// Controller admits pods one after another and keeps count of what they use of quotas.
type Controller struct {
	cluster Cluster
	quotas  []*quotaUsage
}

// New makes a controller. pods are those of the cluster, for quotas whose use is not computed yet.
func New(cluster Cluster, pods []*corev1.Pod) *Controller {
	c := &Controller{cluster: cluster}
	for _, quota := range cluster.Quotas {
		c.quotas = append(c.quotas, newQuotaUsage(quota, pods))
	}
	return c
}

// Admit returns the pod as the API server stores it, and charges it to the quotas of its namespace; or the reason why
// the pod is rejected. It does not change its argument.
func (c *Controller) Admit(pod *corev1.Pod) (*corev1.Pod, *Refusal) {
	pod, refusal := c.Complete(pod)
	if refusal != nil {
		return pod, refusal
	}
	return pod, c.Charge(pod)
}

// Complete returns the pod with all defaults, or the reason why the pod is rejected whatever the quotas are.
func (c *Controller) Complete(pod *corev1.Pod) (*corev1.Pod, *Refusal) {
	pod = pod.DeepCopy()
	pod.Namespace = cmp.Or(pod.Namespace, corev1.NamespaceDefault)
	namespace := c.namespace(pod.Namespace)
	if namespace == nil {
		return pod, refuse("namespaces %q not found", pod.Namespace)
	}
	if namespace.Status.Phase == corev1.NamespaceTerminating {
		return pod, refuse("unable to create new content in namespace %s because it is being terminated", pod.Namespace)
	}
	defaults(pod)
	// The API server validates a pod between mutating and validating admission.
	for _, step := range []func(*corev1.Pod) *Refusal{c.limitDefaults, c.priority, defaultTolerations, c.runtimeClass, complete, validResources, c.limitBounds} {
		if refusal := step(pod); refusal != nil {
			return pod, refusal
		}
	}
	return pod, podSecurity(namespace, pod)
}

// CompleteTemplate returns the pod with what Kueue adds to a pod template when it counts it (AdjustResources in
// pkg/workload/resources.go of Kueue): limits as requests, LimitRange defaults and a RuntimeClass's overhead. It adds no
// tolerations and node selectors: Kueue does not know those that the API server adds to the pods.
func (c *Controller) CompleteTemplate(pod *corev1.Pod) (*corev1.Pod, *Refusal) {
	completed, refusal := c.Complete(pod)
	completed.Spec.NodeSelector, completed.Spec.Tolerations = pod.Spec.NodeSelector, pod.Spec.Tolerations
	return completed, refusal
}

// namespace is nil where it is known not to be there.
func (c *Controller) namespace(name string) *corev1.Namespace {
	unknown := &corev1.Namespace{}
	unknown.Name = name
	if c.cluster.Namespaces == nil {
		return unknown
	}
	at := slices.IndexFunc(c.cluster.Namespaces, func(n *corev1.Namespace) bool { return n.Name == name })
	if at < 0 {
		return nil
	}
	return c.cluster.Namespaces[at]
}

// defaults are those of the API that matter to a scheduler (pkg/apis/core/v1/defaults.go).
func defaults(pod *corev1.Pod) {
	whole := pod.Spec.Resources // is completed after admission, and from the containers first
	pod.Spec = *scheduler.WithRequests(&pod.Spec)
	pod.Spec.Resources = whole
	if !pod.Spec.HostNetwork {
		return
	}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			for j := range containers[i].Ports {
				if port := &containers[i].Ports[j]; port.HostPort == 0 {
					port.HostPort = port.ContainerPort
				}
			}
		}
	}
}

// complete is what the API server does after the mutating plugins (PrepareForCreate in pkg/registry/core/pod/strategy.go).
func complete(pod *corev1.Pod) *Refusal {
	mergeLabelKeys(pod)
	podLevelDefaults(pod)
	return nil
}

// defaultTolerations is plugin/pkg/admission/defaulttolerationseconds.
func defaultTolerations(pod *corev1.Pod) *Refusal {
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		tolerates := func(t corev1.Toleration) bool {
			return (t.Key == key || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "")
		}
		if !slices.ContainsFunc(pod.Spec.Tolerations, tolerates) {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{
				Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300)),
			})
		}
	}
	return nil
}

// priority is plugin/pkg/admission/priority.
func (c *Controller) priority(pod *corev1.Pod) *Refusal {
	spec := &pod.Spec
	class, refusal := c.class(spec.PriorityClassName)
	if refusal != nil {
		return refusal
	}
	value, policy := int32(0), (*corev1.PreemptionPolicy)(nil)
	if class != nil {
		spec.PriorityClassName, value, policy = class.Name, class.Value, class.PreemptionPolicy
	}
	// A priority that the pod brings along is an error unless it is that of its class; pods read from a cluster have
	// it.
	spec.Priority = &value
	// So is a policy that is not the class's; a pod that a dry run has stored has that of another class, if one is
	// planned.
	spec.PreemptionPolicy = policy
	return nil
}

// class is that of a name, or the default one for none; nil where there is no default.
func (c *Controller) class(name string) (*schedulingv1.PriorityClass, *Refusal) {
	var standard *schedulingv1.PriorityClass
	for _, class := range c.cluster.PriorityClasses {
		switch {
		case name != "" && class.Name == name:
			return class, nil
		case name == "" && class.GlobalDefault && (standard == nil || class.Value < standard.Value):
			standard = class
		}
	}
	if name == "" {
		return standard, nil
	}
	if value, isSystem := systemPriorities[name]; isSystem {
		class := &schedulingv1.PriorityClass{Value: value}
		class.Name = name
		return class, nil
	}
	return nil, refuse("no PriorityClass with name %s was found", name)
}

// PriorityOf is the priority that a pod gets; 0 where its class is not there.
func (c *Controller) PriorityOf(spec *corev1.PodSpec) int32 {
	class, _ := c.class(spec.PriorityClassName)
	if class == nil {
		return 0
	}
	return class.Value
}

// HasPriorityClass reports whether a pod may name the class; "" is no class.
func (c *Controller) HasPriorityClass(name string) bool {
	_, refusal := c.class(name)
	return refusal == nil
}

// HasRuntimeClass reports whether a pod may name the class. Where they could not be read, it may.
func (c *Controller) HasRuntimeClass(name string) bool {
	return c.cluster.RuntimeClasses == nil ||
		slices.ContainsFunc(c.cluster.RuntimeClasses, func(r *nodev1.RuntimeClass) bool { return r.Name == name })
}

// systemPriorities are of the classes that every API server makes itself (pkg/apis/scheduling/types.go).
var systemPriorities = map[string]int32{"system-cluster-critical": 2000000000, "system-node-critical": 2000001000}

// runtimeClass is plugin/pkg/admission/runtimeclass.
func (c *Controller) runtimeClass(pod *corev1.Pod) *Refusal {
	spec := &pod.Spec
	if spec.RuntimeClassName == nil || c.cluster.RuntimeClasses == nil {
		return nil
	}
	name := *spec.RuntimeClassName
	at := slices.IndexFunc(c.cluster.RuntimeClasses, func(r *nodev1.RuntimeClass) bool { return r.Name == name })
	if at < 0 {
		return refuse("pod rejected: RuntimeClass %q not found", name)
	}
	class := c.cluster.RuntimeClasses[at]
	if class.Overhead != nil {
		if len(spec.Overhead) > 0 && !equality.Semantic.DeepEqual(class.Overhead.PodFixed, spec.Overhead) {
			return refuse("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
		}
		spec.Overhead = class.Overhead.PodFixed
	}
	if class.Scheduling == nil {
		return nil
	}
	for key, value := range class.Scheduling.NodeSelector {
		if own, has := spec.NodeSelector[key]; has && own != value {
			return refuse("conflict: runtimeClass.scheduling.nodeSelector[%s] = %s; pod.spec.nodeSelector[%s] = %s", key, value, key, own)
		}
		if spec.NodeSelector == nil {
			spec.NodeSelector = map[string]string{}
		}
		spec.NodeSelector[key] = value
	}
	for _, toleration := range class.Scheduling.Tolerations {
		same := func(t corev1.Toleration) bool { return equality.Semantic.DeepEqual(t, toleration) }
		if !slices.ContainsFunc(spec.Tolerations, same) {
			spec.Tolerations = append(spec.Tolerations, toleration)
		}
	}
	return nil
}

// joined is several complaints as one, each of them once.
func joined(violations []string) *Refusal {
	violations = unique(violations)
	switch len(violations) {
	case 0:
		return nil
	case 1:
		return refuse("%s", violations[0])
	}
	return refuse("[%s]", strings.Join(violations, ", "))
}

func unique(texts []string) []string {
	var once []string
	for _, text := range texts {
		if !slices.Contains(once, text) {
			once = append(once, text)
		}
	}
	return once
}
