package podadmission

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	resourcehelpers "k8s.io/component-helpers/resource"
)

// quotaUsage is a ResourceQuota and what is used of it.
type quotaUsage struct {
	*corev1.ResourceQuota
	hard, used corev1.ResourceList
	uncounted  bool // it rejects nothing: see Controller.Uncounted
}

// Clone copies a controller: what one of them charges does not count in the other.
func (c *Controller) Clone() *Controller { return c.withQuotas(func(*quotaUsage) {}) }

// Uncounted is the controller before the quotas that are planned have been counted: they reject nothing. Counted is the
// one after it.
func (c *Controller) Uncounted() *Controller {
	return c.withQuotas(func(l *quotaUsage) { l.uncounted = l.Status.Hard == nil })
}

// Counted is the controller after all quotas have been counted.
func (c *Controller) Counted() *Controller {
	return c.withQuotas(func(l *quotaUsage) { l.uncounted = false })
}

func (c *Controller) withQuotas(change func(*quotaUsage)) *Controller {
	clone := &Controller{cluster: c.cluster, quotas: make([]*quotaUsage, len(c.quotas))}
	for i, l := range c.quotas {
		copied := *l
		copied.used = maps.Clone(l.used)
		change(&copied)
		clone.quotas[i] = &copied
	}
	return clone
}

// newQuotaUsage takes the use that the quota's status has; of one that is planned, it is that of the pods.
func newQuotaUsage(quota *corev1.ResourceQuota, pods []*corev1.Pod) *quotaUsage {
	l := &quotaUsage{ResourceQuota: quota, hard: quota.Status.Hard, used: maps.Clone(quota.Status.Used)}
	if l.hard != nil {
		return l
	}
	l.hard, l.used = quota.Spec.Hard, corev1.ResourceList{}
	for _, pod := range pods {
		if l.covers(pod) {
			l.sum(usage(pod))
		}
	}
	return l
}

// Charge counts the pod in the quotas of its namespace, or returns the quota that it would exceed
// (k8s.io/apiserver/pkg/admission/plugin/resourcequota, CheckRequest).
func (c *Controller) Charge(pod *corev1.Pod) *Refusal {
	var covering []*quotaUsage
	for _, l := range c.quotas {
		if !l.covers(pod) {
			continue
		}
		if refusal := l.requires(pod); refusal != nil && !l.uncounted {
			return l.rejects(refusal)
		}
		covering = append(covering, l)
	}
	use := usage(pod)
	for _, l := range covering {
		if refusal := l.exceeded(use); refusal != nil && !l.uncounted {
			return l.rejects(refusal)
		}
	}
	for _, l := range covering {
		l.sum(usage(pod))
	}
	return nil
}

// rejects is a refusal by this quota.
func (l *quotaUsage) rejects(refusal *Refusal) *Refusal {
	refusal.Quota = true
	if l.Status.Hard == nil {
		refusal.Uncounted = l.Name
	}
	return refusal
}

// ChargeObject counts an object of a resource, such as "jobs.batch", in the quotas for the number of such objects, or
// returns the quota that it would exceed.
func (c *Controller) ChargeObject(namespace, resourceName string) *Refusal {
	use := corev1.ResourceList{corev1.ResourceName("count/" + resourceName): *resource.NewQuantity(1, resource.DecimalSI)}
	counting := func(l *quotaUsage) bool {
		return l.Namespace == namespace && len(l.Spec.Scopes) == 0 && l.Spec.ScopeSelector == nil
	}
	for _, l := range c.quotas {
		if !counting(l) || l.uncounted {
			continue
		}
		if refusal := l.exceeded(use); refusal != nil {
			return l.rejects(refusal)
		}
	}
	for _, l := range c.quotas {
		if counting(l) {
			l.sum(use)
		}
	}
	return nil
}

// Covers reports whether a quota counts the pod's use of something that it limits.
func (c *Controller) Covers(pod *corev1.Pod) bool {
	return slices.ContainsFunc(c.quotas, func(l *quotaUsage) bool { return l.covers(pod) })
}

// Exceeded is the name of a quota that has no more room for a pod even when one like it has ended: its limits were
// lowered, or it requires what the pod does not specify. "" if there is none.
func (c *Controller) Exceeded(pod *corev1.Pod) string {
	use := usage(pod)
	for _, l := range c.quotas {
		if l.covers(pod) && (l.requires(pod) != nil || l.overdrawn(use)) {
			return l.Name
		}
	}
	return ""
}

// ExceededWithout reports whether a quota has no room for a pod even when other pods have ended.
func (c *Controller) ExceededWithout(pod *corev1.Pod, ended []*corev1.Pod) bool {
	for _, l := range c.quotas {
		if !l.covers(pod) {
			continue
		}
		then := quotaUsage{ResourceQuota: l.ResourceQuota, hard: l.hard, used: maps.Clone(l.used)}
		for _, other := range ended {
			if !l.covers(other) {
				continue
			}
			for name, quantity := range usage(other) {
				if left, counted := then.used[name]; counted {
					left = left.DeepCopy()
					left.Sub(quantity)
					then.used[name] = left
				}
			}
		}
		if l.requires(pod) != nil || then.exceeded(usage(pod)) != nil {
			return true
		}
	}
	return false
}

// overdrawn reports whether more is used than the quota allows of a resource that a use needs.
func (l *quotaUsage) overdrawn(use corev1.ResourceList) bool {
	for name := range use {
		used := l.used[name]
		if hard, limited := l.hard[name]; limited && used.Cmp(hard) > 0 {
			return true
		}
	}
	return false
}

// sum counts a use.
func (l *quotaUsage) sum(use corev1.ResourceList) {
	if l.used == nil {
		l.used = corev1.ResourceList{}
	}
	for name, quantity := range use {
		if _, limited := l.hard[name]; !limited {
			continue
		}
		sum := l.used[name].DeepCopy()
		sum.Add(quantity)
		l.used[name] = sum
	}
}

// covers reports whether the quota limits something of the pod: its namespace, its scopes and a resource of pods.
func (l *quotaUsage) covers(pod *corev1.Pod) bool {
	if l.Namespace != pod.Namespace {
		return false
	}
	selectors := make([]corev1.ScopedResourceSelectorRequirement, 0, len(l.Spec.Scopes))
	for _, scope := range l.Spec.Scopes {
		selectors = append(selectors, corev1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: corev1.ScopeSelectorOpExists})
	}
	if l.Spec.ScopeSelector != nil {
		selectors = append(selectors, l.Spec.ScopeSelector.MatchExpressions...)
	}
	for _, selector := range selectors {
		if !inScope(pod, selector) {
			return false
		}
	}
	return slices.ContainsFunc(slices.Collect(maps.Keys(l.hard)), ofPods)
}

// ofPods reports whether pods use a resource of a quota (podResources, podResourcePrefixes and extended resources).
func ofPods(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourcePods, "count/pods", corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage,
		corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory, corev1.ResourceRequestsEphemeralStorage,
		corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory, corev1.ResourceLimitsEphemeralStorage:
		return true
	}
	text := strings.TrimPrefix(string(name), corev1.DefaultResourceRequestsPrefix)
	return strings.HasPrefix(text, corev1.ResourceHugePagesPrefix) || text != string(name) && strings.Contains(text, "/")
}

// inScope is podMatchesScopeFunc of pkg/quota/v1/evaluator/core.
func inScope(pod *corev1.Pod, selector corev1.ScopedResourceSelectorRequirement) bool {
	switch selector.ScopeName {
	case corev1.ResourceQuotaScopeTerminating:
		return pod.Spec.ActiveDeadlineSeconds != nil
	case corev1.ResourceQuotaScopeNotTerminating:
		return pod.Spec.ActiveDeadlineSeconds == nil
	case corev1.ResourceQuotaScopeBestEffort:
		return bestEffort(pod)
	case corev1.ResourceQuotaScopeNotBestEffort:
		return !bestEffort(pod)
	case corev1.ResourceQuotaScopePriorityClass:
		return inClass(pod, selector)
	case corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
		return crossesNamespaces(pod)
	}
	return false
}

func inClass(pod *corev1.Pod, selector corev1.ScopedResourceSelectorRequirement) bool {
	class := pod.Spec.PriorityClassName
	if selector.Operator == corev1.ScopeSelectorOpExists {
		return class != ""
	}
	operator := map[corev1.ScopeSelectorOperator]metav1.LabelSelectorOperator{
		corev1.ScopeSelectorOpIn: metav1.LabelSelectorOpIn, corev1.ScopeSelectorOpNotIn: metav1.LabelSelectorOpNotIn,
		corev1.ScopeSelectorOpDoesNotExist: metav1.LabelSelectorOpDoesNotExist,
	}[selector.Operator]
	const key = string(corev1.ResourceQuotaScopePriorityClass)
	matches, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: key, Operator: operator, Values: selector.Values},
	}})
	set := labels.Set{}
	if class != "" {
		set[key] = class
	}
	return err == nil && matches.Matches(set)
}

// bestEffort reports whether the pod's quality of service is BestEffort (pkg/apis/core/v1/helper/qos): no container has
// requests or limits of processors or memory.
func bestEffort(pod *corev1.Pod) bool {
	hasRequests := func(r *corev1.ResourceRequirements) bool {
		for _, list := range []corev1.ResourceList{r.Requests, r.Limits} {
			for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				if quantity, has := list[name]; has && quantity.Sign() > 0 {
					return true
				}
			}
		}
		return false
	}
	if pod.Spec.Resources != nil && hasRequests(pod.Spec.Resources) {
		return false
	}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			if hasRequests(&containers[i].Resources) {
				return false
			}
		}
	}
	return true
}

func crossesNamespaces(pod *corev1.Pod) bool {
	a := pod.Spec.Affinity
	if a == nil {
		return false
	}
	crosses := func(t corev1.PodAffinityTerm) bool { return len(t.Namespaces) > 0 || t.NamespaceSelector != nil }
	weighted := func(t corev1.WeightedPodAffinityTerm) bool { return crosses(t.PodAffinityTerm) }
	p, anti := a.PodAffinity, a.PodAntiAffinity
	return p != nil && (slices.ContainsFunc(p.RequiredDuringSchedulingIgnoredDuringExecution, crosses) ||
		slices.ContainsFunc(p.PreferredDuringSchedulingIgnoredDuringExecution, weighted)) ||
		anti != nil && (slices.ContainsFunc(anti.RequiredDuringSchedulingIgnoredDuringExecution, crosses) ||
			slices.ContainsFunc(anti.PreferredDuringSchedulingIgnoredDuringExecution, weighted))
}

// requires refuses a pod with containers that omit a request which a quota of processors or memory makes mandatory
// (podEvaluator.Constraints).
func (l *quotaUsage) requires(pod *corev1.Pod) *Refusal {
	if pod.Spec.Resources != nil && len(pod.Spec.Resources.Requests)+len(pod.Spec.Resources.Limits) > 0 {
		return nil
	}
	lacking := map[corev1.ResourceName][]string{}
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			container := &containers[i]
			specified := computed(container.Resources.Requests, container.Resources.Limits)
			for name := range l.hard {
				switch name {
				case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory,
					corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory:
					if _, ok := specified[name]; !ok {
						lacking[name] = append(lacking[name], container.Name)
					}
				}
			}
		}
	}
	if len(lacking) == 0 {
		return nil
	}
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(lacking)) {
		slices.Sort(lacking[name])
		texts = append(texts, fmt.Sprintf("%s for: %s", name, strings.Join(lacking[name], ",")))
	}
	return refuse("failed quota: %s: must specify %s", l.Name, strings.Join(texts, "; "))
}

// exceeded lists the resources of which a use is more than the quota has left.
func (l *quotaUsage) exceeded(use corev1.ResourceList) *Refusal {
	var requested, used, limited []string
	for _, name := range slices.Sorted(maps.Keys(use)) {
		bound, isLimited := l.hard[name]
		request := use[name]
		if !isLimited || request.IsZero() {
			continue
		}
		has := l.used[name]
		sum := has.DeepCopy()
		sum.Add(request)
		if sum.Cmp(bound) > 0 {
			requested = append(requested, fmt.Sprintf("%s=%s", name, request.String()))
			used = append(used, fmt.Sprintf("%s=%s", name, has.String()))
			limited = append(limited, fmt.Sprintf("%s=%s", name, bound.String()))
		}
	}
	if len(requested) == 0 {
		return nil
	}
	return &Refusal{Passing: true, Message: fmt.Sprintf("exceeded quota: %s, requested: %s, used: %s, limited: %s",
		l.Name, strings.Join(requested, ","), strings.Join(used, ","), strings.Join(limited, ","))}
}

// usage is what a pod counts for in quotas (PodUsageFunc).
func usage(pod *corev1.Pod) corev1.ResourceList {
	var options resourcehelpers.PodResourcesOptions
	return computed(resourcehelpers.PodRequests(pod, options), resourcehelpers.PodLimits(pod, options))
}

// computed is podComputeUsageHelper, with the count of pods.
func computed(requests, limits corev1.ResourceList) corev1.ResourceList {
	one := *resource.NewQuantity(1, resource.DecimalSI)
	use := corev1.ResourceList{corev1.ResourcePods: one, "count/pods": one}
	for name, request := range requests {
		switch {
		case name == corev1.ResourceCPU || name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage,
			strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
			use[name], use[corev1.DefaultResourceRequestsPrefix+name] = request, request
		case extended(name):
			use[corev1.DefaultResourceRequestsPrefix+name] = request
		}
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		if limit, has := limits[name]; has {
			use["limits."+name] = limit
		}
	}
	return use
}

// extended is IsExtendedResourceName of pkg/apis/core/v1/helper.
func extended(name corev1.ResourceName) bool {
	return strings.Contains(string(name), "/") && !strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix) &&
		!strings.HasPrefix(string(name), corev1.DefaultResourceRequestsPrefix)
}
