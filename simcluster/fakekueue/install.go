package fakekueue

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/configuration"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/crd"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/crds"
)

const (
	// systemNamespace and account are where Kueue's own manifests put it, and who it is.
	systemNamespace = configuration.Namespace
	account         = "kueue-controller-manager"

	roleName = "kueue-manager-role"
	// installer owns the fields of what is installed.
	installer = "simcluster"
)

// install does what applying Kueue's manifests does: the API, the account and what it may do. It may be repeated.
func install(ctx context.Context, admin *rest.Config) error {
	client, err := dynamic.NewForConfig(admin)
	if err != nil {
		return fmt.Errorf("installing Kueue's API: %w", err)
	}
	definitions, err := crd.Objects()
	if err != nil {
		return fmt.Errorf("installing Kueue's API: %w", err)
	}
	if err := crds.Apply(ctx, client, definitions); err != nil {
		return err
	}
	for _, o := range accountObjects() {
		if err := applyTyped(ctx, client, o); err != nil {
			return err
		}
	}
	return nil
}

// apply creates or changes an object, server-side.
func apply(ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, o *unstructured.Unstructured) error {
	_, err := client.Resource(resource).Namespace(o.GetNamespace()).Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: installer, Force: true})
	if err != nil {
		return fmt.Errorf("installing %s %s: %w", resource.Resource, o.GetName(), err)
	}
	return nil
}

// applyTyped applies an object of a built-in kind.
func applyTyped(ctx context.Context, client dynamic.Interface, o object) error {
	kinds, _, err := scheme.Scheme.ObjectKinds(o)
	if err != nil {
		return err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(kinds[0])
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(u.Object, "status")
	resource, ok := installed[kinds[0].Kind]
	if !ok {
		return fmt.Errorf("%s is not among what is installed", kinds[0])
	}
	return apply(ctx, client, kinds[0].GroupVersion().WithResource(resource), u)
}

// installed are the plural names of the kinds that are installed, besides definitions.
var installed = map[string]string{
	"Namespace":                      "namespaces",
	"ServiceAccount":                 "serviceaccounts",
	"ConfigMap":                      "configmaps",
	"ClusterRole":                    "clusterroles",
	"ClusterRoleBinding":             "clusterrolebindings",
	"MutatingWebhookConfiguration":   "mutatingwebhookconfigurations",
	"ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
}

// awaitServed waits until the API server serves what was installed to the controller's own account. An established
// definition and a bound role take effect a moment later, and a reflector that fails before that backs off for long.
func awaitServed(ctx context.Context, own *rest.Config) error {
	client, err := dynamic.NewForConfig(own)
	if err != nil {
		return err
	}
	definitions, err := crd.Objects()
	if err != nil {
		return err
	}
	return crds.AwaitServed(ctx, client, definitions)
}

// accountObjects are the controller's namespace, account and rights. Kueue's own role has the same verbs, for more
// kinds.
func accountObjects() []object {
	kueueGroup := []string{kueue.GroupName}
	read := []string{"get", "list", "watch"}
	rule := func(groups, resources, verbs []string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: groups, Resources: resources, Verbs: verbs}
	}
	return []object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: systemNamespace}},
		// What forecasts read of Kueue's configuration: nothing here evicts workloads whose pods are not ready.
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: configuration.ConfigMap, Namespace: systemNamespace},
			Data:       map[string]string{configuration.Key: "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\nfeatureGates:\n  DisableWaitForPodsReady: true\n"},
		},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account, Namespace: systemNamespace}},
		&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: roleName},
			Rules: []rbacv1.PolicyRule{
				rule([]string{""}, []string{"namespaces", "limitranges", "nodes"}, read),
				rule([]string{""}, []string{"pods"}, append(read, "patch", "delete")),
				rule([]string{""}, []string{"pods/status"}, []string{"patch"}),
				rule([]string{"batch"}, []string{"jobs"}, append(read, "patch")),
				rule([]string{"batch"}, []string{"jobs/status"}, []string{"patch"}),
				// To set owner references that block the owner's deletion (plug-in OwnerReferencesPermissionEnforcement).
				rule([]string{"", "batch"}, []string{"pods/finalizers", "jobs/finalizers"}, []string{"update"}),
				rule([]string{"scheduling.k8s.io"}, []string{"priorityclasses"}, read),
				rule([]string{"node.k8s.io"}, []string{"runtimeclasses"}, read),
				rule([]string{"events.k8s.io"}, []string{"events"}, []string{"create", "patch", "update"}),
				rule([]string{"admissionregistration.k8s.io"}, []string{"mutatingwebhookconfigurations"}, []string{"get", "update"}),
				rule(kueueGroup, []string{"workloads"}, append(read, "create", "update", "patch", "delete")),
				rule(kueueGroup, []string{"clusterqueues", "resourceflavors", "admissionchecks", "topologies"}, append(read, "patch")),
				rule(kueueGroup, []string{"localqueues", "cohorts", "workloadpriorityclasses"}, read),
				rule(kueueGroup, []string{"workloads/status", "clusterqueues/status", "localqueues/status"}, []string{"patch"}),
				rule(kueueGroup, []string{"workloads/finalizers", "clusterqueues/finalizers", "resourceflavors/finalizers"}, []string{"update"}),
			},
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "kueue-manager-rolebinding"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: roleName},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: systemNamespace, Name: account}},
		},
	}
}
