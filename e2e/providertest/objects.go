package providertest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/await"
)

// kinds are all that the provider creates, and what the controllers create for it.
var kinds = []schema.GroupVersionResource{
	{Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses"},
	{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "workloadpriorityclasses"},
	{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "resourceflavors"},
	{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "clusterqueues"},
	{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "localqueues"},
	{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "cohorts"},
	{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "topologies"},
	{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "admissionchecks"},
	{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "workloads"},
	{Group: "batch", Version: "v1", Resource: "jobs"},
	{Version: "v1", Resource: "pods"},
	{Version: "v1", Resource: "configmaps"},
	{Version: "v1", Resource: "secrets"},
	{Version: "v1", Resource: "services"},
	{Version: "v1", Resource: "serviceaccounts"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
}

// Objects are the names of all objects in a cluster of the kinds that the provider creates.
type Objects map[string]bool

// ListObjects lists them.
func ListObjects(t *testing.T, config *rest.Config) Objects {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	found, err := listObjects(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func listObjects(ctx context.Context, client dynamic.Interface) (Objects, error) {
	found := Objects{}
	for _, kind := range kinds {
		list, err := client.Resource(kind).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		for _, item := range list.Items {
			if slices.Contains([]string{"default", "kube-root-ca.crt"}, item.GetName()) && item.GetNamespace() != "" {
				continue // the cluster creates these in every namespace
			}
			found[kind.Resource+" "+item.GetNamespace()+"/"+item.GetName()] = true
		}
	}
	return found, nil
}

// ExpectNoOthers waits until the cluster has no objects besides these: Kubernetes' garbage collector removes what a Job
// owns a moment after the Job.
func (o Objects) ExpectNoOthers(t *testing.T, config *rest.Config) {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience.Medium)
	defer cancel()
	err = await.Until(ctx, "all that the test created is gone", 200*time.Millisecond, func(ctx context.Context) error {
		now, err := listObjects(ctx, client)
		if err != nil {
			return err
		}
		maps.DeleteFunc(now, func(name string, _ bool) bool { return o[name] })
		if len(now) > 0 {
			return fmt.Errorf("left are %s", strings.Join(slices.Sorted(maps.Keys(now)), ", "))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
