package forecast

import (
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Webhooks may change or reject pods besides the API server itself. Kueue's are known: they put pods into queues.
type Webhooks struct {
	Mutating   []*admissionv1.MutatingWebhookConfiguration
	Validating []*admissionv1.ValidatingWebhookConfiguration
}

// kueuesOwn is the prefix of the names of Kueue's configurations.
const kueuesOwn = "kueue-"

// noteWebhooks notes the webhooks that apply to a planned pod, unless the API server has called them in a dry run.
func (f *forecast) noteWebhooks(pod Pod) {
	if pod.Answered {
		return
	}
	note := func(kind, configuration, name string, rules []admissionv1.RuleWithOperations, namespaces, objects *metav1.LabelSelector) {
		if strings.HasPrefix(configuration, kueuesOwn) || !forPods(rules) || !selects(objects, pod.Labels) || !selects(namespaces, f.namespaceLabels(pod.Namespace)) {
			return
		}
		f.notes.add(WebhookNotCalled, kind+" "+configuration, "webhook %s of %s %s may change or reject the pods, and no dry run has asked it", name, kind, configuration)
	}
	for _, c := range f.snapshot.Webhooks.Mutating {
		for _, w := range c.Webhooks {
			note("MutatingWebhookConfiguration", c.Name, w.Name, w.Rules, w.NamespaceSelector, w.ObjectSelector)
		}
	}
	for _, c := range f.snapshot.Webhooks.Validating {
		for _, w := range c.Webhooks {
			note("ValidatingWebhookConfiguration", c.Name, w.Name, w.Rules, w.NamespaceSelector, w.ObjectSelector)
		}
	}
}

// forPods reports whether rules apply to the creation of pods.
func forPods(rules []admissionv1.RuleWithOperations) bool {
	has := func(list []string, value string) bool {
		return slices.Contains(list, value) || slices.Contains(list, "*")
	}
	return slices.ContainsFunc(rules, func(r admissionv1.RuleWithOperations) bool {
		created := slices.Contains(r.Operations, admissionv1.Create) || slices.Contains(r.Operations, admissionv1.OperationAll)
		cluster := r.Scope != nil && *r.Scope == admissionv1.ClusterScope
		return created && !cluster && has(r.APIGroups, corev1.GroupName) && has(r.APIVersions, "v1") && (has(r.Resources, "pods") || slices.Contains(r.Resources, "*/*"))
	})
}

// selects reports whether a selector matches; none matches everything.
func selects(selector *metav1.LabelSelector, set map[string]string) bool {
	if selector == nil {
		return true
	}
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err != nil || s.Matches(labels.Set(set))
}

// namespaceLabels are those of a namespace as far as they are known, with its name.
func (f *forecast) namespaceLabels(name string) map[string]string {
	for _, namespace := range f.snapshot.Namespaces {
		if namespace.Name == name {
			return namespace.Labels
		}
	}
	return map[string]string{corev1.LabelMetadataName: name}
}
