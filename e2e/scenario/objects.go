package scenario

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	kueueclient "github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/client"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

// clients of the cluster that a scenario runs on.
type clients struct {
	kubernetes kubernetes.Interface
	kueue      *kueueclient.Client
	metadata   metadata.Interface
}

// connect creates clients from a kubeconfig file.
func connect(kubeconfig string) (clients, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return clients{}, fmt.Errorf("kubeconfig %s: %w", kubeconfig, err)
	}
	config.QPS = -1 // no client-side rate limit: the cluster has no other clients
	config.WarningHandler = rest.NoWarnings{}
	var c clients
	if c.kubernetes, err = kubernetes.NewForConfig(config); err != nil {
		return clients{}, fmt.Errorf("kubeconfig %s: %w", kubeconfig, err)
	}
	if c.kueue, err = kueueclient.NewForConfig(config); err != nil {
		return clients{}, fmt.Errorf("kubeconfig %s: %w", kubeconfig, err)
	}
	if c.metadata, err = metadata.NewForConfig(config); err != nil {
		return clients{}, fmt.Errorf("kubeconfig %s: %w", kubeconfig, err)
	}
	return c, nil
}

// inventoryKinds are the kinds of objects that a scenario's resources, the masters or Kueue create. Events are left
// out: Kubernetes deletes them after a while.
var inventoryKinds = []struct {
	resource   schema.GroupVersionResource
	namespaced bool
}{
	{schema.GroupVersionResource{Version: "v1", Resource: "pods"}, true},
	{schema.GroupVersionResource{Version: "v1", Resource: "services"}, true},
	{schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, true},
	{schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, true},
	{schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}, true},
	{schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}, true},
	{schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}, true},
	{schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}, true},
	{schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}, true},
	{schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"}, true},
	{schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses"}, false},
	{kueue.SchemeGroupVersion.WithResource("workloads"), true},
	{kueue.SchemeGroupVersion.WithResource("localqueues"), true},
	{kueue.SchemeGroupVersion.WithResource("clusterqueues"), false},
	{kueue.SchemeGroupVersion.WithResource("cohorts"), false},
	{kueue.SchemeGroupVersion.WithResource("resourceflavors"), false},
	{kueue.SchemeGroupVersion.WithResource("workloadpriorityclasses"), false},
}

// inventory lists every object of inventoryKinds as RESOURCE/NAME. It skips kinds that the cluster does not serve.
func (c clients) inventory(ctx context.Context, namespace string) ([]string, error) {
	var objects []string
	for _, kind := range inventoryKinds {
		var lister metadata.ResourceInterface = c.metadata.Resource(kind.resource)
		if kind.namespaced {
			lister = c.metadata.Resource(kind.resource).Namespace(namespace)
		}
		list, err := lister.List(ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", kind.resource.Resource, err)
		}
		for _, item := range list.Items {
			objects = append(objects, kind.resource.Resource+"/"+item.Name)
		}
	}
	return objects, nil
}

// left are the objects that are there and were not before, once the garbage collector has had its time.
func (c clients) leftovers(ctx context.Context, namespace string, before []string) (eventlog.Leftovers, error) {
	deadline := time.Now().Add(patience.Medium)
	for {
		now, err := c.inventory(ctx, namespace)
		if err != nil {
			return eventlog.Leftovers{}, err
		}
		more := slices.DeleteFunc(now, func(object string) bool { return slices.Contains(before, object) })
		if len(more) == 0 || time.Now().After(deadline) {
			return eventlog.Leftovers{Objects: more}, nil
		}
		select {
		case <-time.After(pollInterval):
		case <-ctx.Done():
			return eventlog.Leftovers{}, context.Cause(ctx)
		}
	}
}
