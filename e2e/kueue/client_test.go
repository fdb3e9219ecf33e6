package kueue_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
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

// workload asks for one pod in a queue.
func workload(name string) *kueue.Workload {
	return &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: kueue.WorkloadSpec{
			QueueName: "user-queue",
			PodSets: []kueue.PodSet{{Name: kueue.DefaultPodSetName, Count: 1, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers:    []corev1.Container{{Name: "main", Image: "image", Command: []string{"true"}}},
			}}}},
		},
	}
}

func TestAWorkloadKeepsItsPodsTemplateAndTakesAnAdmission(t *testing.T) {
	workloads := provided(t).Kueue().Workloads(cluster.Namespace(t))
	requested := workload("admitted")
	created, err := workloads.Create(t.Context(), requested, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(requested.Spec.PodSets[0].Template, created.Spec.PodSets[0].Template); diff != "" {
		t.Errorf("the pods' template (-sent +stored):\n%s", diff)
	}
	if created.Spec.Active == nil || !*created.Spec.Active {
		t.Errorf("active is %v, not true by default", created.Spec.Active)
	}
	one := int32(1)
	created.Status.Admission = &kueue.Admission{ClusterQueue: "queue", PodSetAssignments: []kueue.PodSetAssignment{{
		Name: kueue.DefaultPodSetName, Count: &one,
		Flavors:       map[corev1.ResourceName]kueue.ResourceFlavorReference{"cpu": "default"},
		ResourceUsage: corev1.ResourceList{"cpu": resource.MustParse("1")},
	}}}
	for _, condition := range []string{kueue.WorkloadQuotaReserved, kueue.WorkloadAdmitted} {
		created.Status.Conditions = append(created.Status.Conditions, metav1.Condition{
			Type: condition, Status: metav1.ConditionTrue, Reason: condition, LastTransitionTime: metav1.Now().Rfc3339Copy(),
		})
	}
	admitted, err := workloads.UpdateStatus(t.Context(), created, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(created.Status, admitted.Status); diff != "" {
		t.Errorf("the status (-sent +stored):\n%s", diff)
	}
	inQueue, err := workloads.List(t.Context(), metav1.ListOptions{FieldSelector: "status.admission.clusterQueue=queue"})
	if err != nil || len(inQueue.Items) != 1 {
		t.Errorf("workloads of the queue: %d, %v", len(inQueue.Items), err)
	}

	t.Run("and its queue cannot be changed any more", func(t *testing.T) {
		moved := admitted.DeepCopy()
		moved.Spec.QueueName = "other"
		if _, err := workloads.Update(t.Context(), moved, metav1.UpdateOptions{}); err == nil || !strings.Contains(err.Error(), "queueName is immutable while workload quota reserved") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("and kubectl shows where it is", func(t *testing.T) {
		columns, rows := table(t, "namespaces/"+created.Namespace+"/workloads")
		if diff := cmp.Diff([]string{"Name", "Queue", "Reserved in", "Admitted", "Finished", "Age"}, columns); diff != "" {
			t.Errorf("columns (-want +got):\n%s", diff)
		}
		if len(rows) != 1 || len(rows[0]) != 6 {
			t.Fatalf("rows: %v", rows)
		}
		if diff := cmp.Diff([]any{"admitted", "user-queue", "queue", "True", nil}, rows[0][:5]); diff != "" {
			t.Errorf("row (-want +got):\n%s", diff)
		}
	})
}

// table is what kubectl gets to show, without the columns of -o wide.
func table(t *testing.T, path string) (columns []string, rows [][]any) {
	t.Helper()
	client, err := cluster.Client()
	if err != nil {
		t.Fatal(err)
	}
	body, err := client.CoreV1().RESTClient().Get().AbsPath("/apis/"+kueue.SchemeGroupVersion.String()+"/"+path).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var table metav1.Table
	if err := json.Unmarshal(body, &table); err != nil {
		t.Fatal(err)
	}
	for _, column := range table.ColumnDefinitions {
		if column.Priority == 0 {
			columns = append(columns, column.Name)
		}
	}
	for _, row := range table.Rows {
		rows = append(rows, row.Cells)
	}
	return columns, rows
}
