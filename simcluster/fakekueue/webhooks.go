package fakekueue

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/fakekueue/admission"
)

// The webhook configurations, by Kueue's names.
const (
	mutatingName   = "kueue-mutating-webhook-configuration"
	validatingName = "kueue-validating-webhook-configuration"

	// Two webhooks more than Kueue has, for objects that name no queue, in namespaces with a LocalQueue "default". Kueue
	// looks at every Job and pod of the cluster instead; here nothing that is not queued depends on the controller.
	defaultJobs = "mjob-default.kb.io"
	defaultPods = "mpod-default.kb.io"
)

// A hook is one webhook, as far as they differ.
type hook struct {
	name, path string
	operations []admissionv1.OperationType
	group      string
	version    string
	resources  []string
	objects    *metav1.LabelSelector
	namespaces *metav1.LabelSelector
}

func create() []admissionv1.OperationType { return []admissionv1.OperationType{admissionv1.Create} }

func createUpdate() []admissionv1.OperationType {
	return []admissionv1.OperationType{admissionv1.Create, admissionv1.Update}
}

// labelled selects objects with a label, whatever its value.
func labelled(key string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: metav1.LabelSelectorOpExists}}}
}

func unlabelled(key string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: metav1.LabelSelectorOpDoesNotExist}}}
}

// unmanaged are the namespaces in which nothing is queued (Kueue's managedJobsNamespaceSelector).
func unmanaged() []string { return []string{"kube-system", systemNamespace} }

func managedNamespaces() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: unmanaged()},
	}}
}

// onlyNamespaces selects namespaces by name; none for none.
func onlyNamespaces(names []string) *metav1.LabelSelector {
	// A name that no namespace can have, because an empty list is not valid.
	if len(names) == 0 {
		names = []string{"NONE"}
	}
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: names},
	}}
}

func mutatingHooks() []hook {
	const version = "v1beta2"
	return []hook{
		{name: "mjob.kb.io", path: admission.MutateJobPath, operations: create(), group: "batch", version: "v1", resources: []string{"jobs"}, objects: labelled(kueue.QueueLabel), namespaces: managedNamespaces()},
		{name: "mpod.kb.io", path: admission.MutatePodPath, operations: create(), version: "v1", resources: []string{"pods"}, objects: labelled(kueue.QueueLabel), namespaces: managedNamespaces()},
		{name: defaultJobs, path: admission.MutateJobPath, operations: create(), group: "batch", version: "v1", resources: []string{"jobs"}, objects: unlabelled(kueue.QueueLabel), namespaces: onlyNamespaces(nil)},
		{name: defaultPods, path: admission.MutatePodPath, operations: create(), version: "v1", resources: []string{"pods"}, objects: unlabelled(kueue.QueueLabel), namespaces: onlyNamespaces(nil)},
		{name: "mclusterqueue.kb.io", path: admission.MutateClusterQueuePath, operations: create(), group: kueue.GroupName, version: version, resources: []string{"clusterqueues"}},
		{name: "mresourceflavor.kb.io", path: admission.MutateFlavorPath, operations: create(), group: kueue.GroupName, version: version, resources: []string{"resourceflavors"}},
	}
}

func validatingHooks() []hook {
	const version = "v1beta2"
	return []hook{
		{name: "vjob.kb.io", path: admission.ValidateJobPath, operations: createUpdate(), group: "batch", version: "v1", resources: []string{"jobs"}, objects: labelled(kueue.QueueLabel), namespaces: managedNamespaces()},
		{name: "vpod.kb.io", path: admission.ValidatePodPath, operations: createUpdate(), version: "v1", resources: []string{"pods"}, objects: labelled(kueue.ManagedLabel), namespaces: managedNamespaces()},
		{name: "vclusterqueue.kb.io", path: admission.ValidateClusterQueuePath, operations: createUpdate(), group: kueue.GroupName, version: version, resources: []string{"clusterqueues"}},
		{name: "vcohort.kb.io", path: admission.ValidateCohortPath, operations: createUpdate(), group: kueue.GroupName, version: version, resources: []string{"cohorts"}},
		{name: "vresourceflavor.kb.io", path: admission.ValidateFlavorPath, operations: createUpdate(), group: kueue.GroupName, version: version, resources: []string{"resourceflavors"}},
	}
}

// endpoint is where the API server reaches a webhook: by URL, because there is no Service network here.
func endpoint(port int, authority []byte, path string) admissionv1.WebhookClientConfig {
	return admissionv1.WebhookClientConfig{URL: ptr.To(fmt.Sprintf("https://127.0.0.1:%d%s", port, path)), CABundle: authority}
}

func (h hook) rules() []admissionv1.RuleWithOperations {
	return []admissionv1.RuleWithOperations{{
		Operations: h.operations,
		Rule:       admissionv1.Rule{APIGroups: []string{h.group}, APIVersions: []string{h.version}, Resources: h.resources},
	}}
}

func mutatingConfiguration(port int, authority []byte) *admissionv1.MutatingWebhookConfiguration {
	configuration := &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: mutatingName}}
	for _, h := range mutatingHooks() {
		configuration.Webhooks = append(configuration.Webhooks, admissionv1.MutatingWebhook{
			Name:                    h.name,
			ClientConfig:            endpoint(port, authority, h.path),
			Rules:                   h.rules(),
			FailurePolicy:           ptr.To(admissionv1.Fail),
			SideEffects:             ptr.To(admissionv1.SideEffectClassNone),
			NamespaceSelector:       h.namespaces,
			ObjectSelector:          h.objects,
			AdmissionReviewVersions: []string{"v1"},
		})
	}
	return configuration
}

func validatingConfiguration(port int, authority []byte) *admissionv1.ValidatingWebhookConfiguration {
	configuration := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: validatingName}}
	for _, h := range validatingHooks() {
		configuration.Webhooks = append(configuration.Webhooks, admissionv1.ValidatingWebhook{
			Name:                    h.name,
			ClientConfig:            endpoint(port, authority, h.path),
			Rules:                   h.rules(),
			FailurePolicy:           ptr.To(admissionv1.Fail),
			SideEffects:             ptr.To(admissionv1.SideEffectClassNone),
			NamespaceSelector:       h.namespaces,
			ObjectSelector:          h.objects,
			AdmissionReviewVersions: []string{"v1"},
		})
	}
	return configuration
}

// setDefaultNamespaces has the webhooks for objects that name no queue called in these namespaces only.
func setDefaultNamespaces(ctx context.Context, client kubernetes.Interface, names []string) error {
	configurations := client.AdmissionregistrationV1().MutatingWebhookConfigurations()
	configuration, err := configurations.Get(ctx, mutatingName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("webhooks of namespaces with a default queue: %w", err)
	}
	slices.Sort(names)
	selector, changed := onlyNamespaces(names), false
	for i := range configuration.Webhooks {
		webhook := &configuration.Webhooks[i]
		if (webhook.Name == defaultJobs || webhook.Name == defaultPods) && !equalJSON(webhook.NamespaceSelector, selector) {
			webhook.NamespaceSelector, changed = selector, true
		}
	}
	if !changed {
		return nil
	}
	if _, err := configurations.Update(ctx, configuration, metav1.UpdateOptions{FieldManager: fieldManager}); err != nil {
		return fmt.Errorf("webhooks of namespaces with a default queue: %w", err)
	}
	return nil
}

func equalJSON(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}
