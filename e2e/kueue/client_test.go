package kueue_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	internalcluster "github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
)

// provided is the client that the provider has.
func provided(t *testing.T) *internalcluster.Client {
	t.Helper()
	client, err := internalcluster.New(internalcluster.Config{Kubeconfigs: []string{cluster.Kubeconfig}})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestAQueueIsMadeChangedAndRemovedLikeAnyObject(t *testing.T) {
	client := provided(t)
	queues := client.Kueue().ClusterQueues()
	queue := &kueue.ClusterQueue{
		ObjectMeta: metav1.ObjectMeta{Name: "made", Labels: map[string]string{"team": "ml"}},
		Spec: kueue.ClusterQueueSpec{
			CohortName:        "research",
			NamespaceSelector: &metav1.LabelSelector{},
			ResourceGroups: []kueue.ResourceGroup{{
				CoveredResources: []corev1.ResourceName{"cpu"},
				Flavors:          []kueue.FlavorQuotas{{Name: "default", Resources: []kueue.ResourceQuota{{Name: "cpu", NominalQuota: resource.MustParse("4")}}}},
			}},
		},
	}
	created, err := internalcluster.Create(t.Context(), client, queues, queue)
	if err != nil {
		t.Fatal(err)
	}
	never := kueue.BorrowWithinCohort{Policy: kueue.BorrowWithinCohortPolicyNever}
	none := kueue.None
	want := *queue.Spec.DeepCopy()
	want.QueueingStrategy, want.StopPolicy = kueue.BestEffortFIFO, &none
	want.Preemption = &kueue.ClusterQueuePreemption{
		WithinClusterQueue: kueue.PreemptionPolicyNever, ReclaimWithinCohort: kueue.PreemptionPolicyNever, BorrowWithinCohort: &never,
	}
	want.FlavorFungibility = &kueue.FlavorFungibility{WhenCanBorrow: kueue.MayStopSearch, WhenCanPreempt: kueue.TryNextFlavor}
	if diff := cmp.Diff(want, created.Spec); diff != "" {
		t.Errorf("the API server's defaults (-want +got):\n%s", diff)
	}

	changed := queue.DeepCopy()
	changed.Spec.CohortName = ""
	changed.Spec.QueueingStrategy = kueue.StrictFIFO
	changed.Spec.ResourceGroups[0].Flavors[0].Resources[0].NominalQuota = resource.MustParse("1500m")
	applied, err := internalcluster.Apply(t.Context(), client, queues, changed, internalcluster.ApplyOptions[*kueue.ClusterQueue]{UID: created.UID})
	if err != nil {
		t.Fatal(err)
	}
	want.CohortName, want.QueueingStrategy, want.ResourceGroups = "", kueue.StrictFIFO, changed.Spec.ResourceGroups
	if diff := cmp.Diff(want, applied.Spec); diff != "" {
		t.Errorf("after the change (-want +got):\n%s", diff)
	}

	if err := internalcluster.Delete(t.Context(), client, queues, queue.Name, created.UID, metav1.DeletePropagationBackground); err != nil {
		t.Fatal(err)
	}
	if _, err := internalcluster.Get(t.Context(), client, queues, queue.Name); !apierrors.IsNotFound(err) {
		t.Errorf("after the deletion: %v", err)
	}
}

func TestAWatchOfAllNamespacesSeesAQueue(t *testing.T) {
	queues := provided(t).Kueue()
	list, err := queues.LocalQueues("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	watcher, err := queues.LocalQueues("").Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	namespace := cluster.Namespace(t)
	queue := &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: "watched"}, Spec: kueue.LocalQueueSpec{ClusterQueue: "queue"}}
	if _, err := queues.LocalQueues(namespace).Create(t.Context(), queue, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for {
		select {
		case event := <-watcher.ResultChan():
			if seen, ok := event.Object.(*kueue.LocalQueue); ok && event.Type == watch.Added && seen.Name == queue.Name && seen.Namespace == namespace {
				return
			}
		case <-time.After(patience.Medium):
			t.Fatal("the queue was not seen")
		}
	}
}
