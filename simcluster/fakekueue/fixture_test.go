package fakekueue_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
	kueueclient "github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/client"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/await"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/controlplane"
)

// A world is what one test works with: a namespace with the LocalQueue "queue" of a ClusterQueue of 4 CPU and 8Gi, in
// one flavor, and two classes of priority, low (10) and high (1000). Cluster-wide names begin with the namespace's.
type world struct {
	t         *testing.T
	namespace string
	core      kubernetes.Interface
	kueue     *kueueclient.Client
}

const queueName = "queue"

func newWorld(t *testing.T, change ...func(*kueue.ClusterQueue)) *world {
	t.Helper()
	w := newNamespace(t)
	w.flavor("default", kueue.ResourceFlavorSpec{})
	w.clusterQueue("cq", append([]func(*kueue.ClusterQueue){w.quota("4")}, change...)...)
	w.localQueue(queueName, "cq")
	w.class("low", 10)
	w.class("high", 1000)
	return w
}

func newNamespace(t *testing.T) *world {
	t.Helper()
	config, err := cluster.Config()
	if err != nil {
		t.Fatal(err)
	}
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kueueclient.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &world{t: t, namespace: cluster.Namespace(t), core: core, kueue: client}
}

// global is the cluster-wide name of something of this test's.
func (w *world) global(name string) string { return w.namespace + "-" + name }

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) flavor(name string, spec kueue.ResourceFlavorSpec) {
	w.t.Helper()
	_, err := w.kueue.ResourceFlavors().Create(w.t.Context(), &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: w.global(name)}, Spec: spec}, metav1.CreateOptions{})
	w.must(err)
}

func (w *world) class(name string, value int32) {
	w.t.Helper()
	_, err := w.kueue.WorkloadPriorityClasses().Create(w.t.Context(), &kueue.WorkloadPriorityClass{ObjectMeta: metav1.ObjectMeta{Name: w.global(name)}, Value: value}, metav1.CreateOptions{})
	w.must(err)
}

// quota gives a queue so many CPUs and 8Gi in the flavor "default".
func (w *world) quota(cpu string) func(*kueue.ClusterQueue) {
	return func(q *kueue.ClusterQueue) {
		q.Spec.ResourceGroups = []kueue.ResourceGroup{{
			CoveredResources: []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory},
			Flavors: []kueue.FlavorQuotas{{Name: kueue.ResourceFlavorReference(w.global("default")), Resources: []kueue.ResourceQuota{
				{Name: corev1.ResourceCPU, NominalQuota: resource.MustParse(cpu)},
				{Name: corev1.ResourceMemory, NominalQuota: resource.MustParse("8Gi")},
			}}},
		}}
	}
}

// clusterQueue makes a queue for this namespace, in which higher priorities preempt lower ones.
func (w *world) clusterQueue(name string, change ...func(*kueue.ClusterQueue)) *kueue.ClusterQueue {
	w.t.Helper()
	q := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: w.global(name)}, Spec: kueue.ClusterQueueSpec{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: w.namespace}},
		Preemption:        &kueue.ClusterQueuePreemption{WithinClusterQueue: kueue.PreemptionPolicyLowerPriority},
	}}
	for _, c := range change {
		c(q)
	}
	created, err := w.kueue.ClusterQueues().Create(w.t.Context(), q, metav1.CreateOptions{})
	w.must(err)
	return created
}

func (w *world) localQueue(name, clusterQueue string) {
	w.t.Helper()
	_, err := w.kueue.LocalQueues(w.namespace).Create(w.t.Context(), &kueue.LocalQueue{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(w.global(clusterQueue))},
	}, metav1.CreateOptions{})
	w.must(err)
}

func (w *world) changeQueue(name string, change func(*kueue.ClusterQueue)) {
	w.t.Helper()
	w.eventually("ClusterQueue "+name+" is changed", func(ctx context.Context) error {
		q, err := w.kueue.ClusterQueues().Get(ctx, w.global(name), metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(q)
		_, err = w.kueue.ClusterQueues().Update(ctx, q, metav1.UpdateOptions{})
		return err
	})
}

func (w *world) queueLabels(class string) map[string]string {
	labels := map[string]string{kueue.QueueLabel: queueName}
	if class != "" {
		labels[kueue.WorkloadPriorityClassLabel] = w.global(class)
	}
	return labels
}

// podSpec asks for one CPU and runs a shell script.
func podSpec(script string) corev1.PodSpec {
	return corev1.PodSpec{
		RestartPolicy:                 corev1.RestartPolicyNever,
		TerminationGracePeriodSeconds: ptr.To[int64](5),
		Containers: []corev1.Container{{
			Name: "main", Image: "busybox", Command: []string{"sh", "-c", script},
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
		}},
	}
}

// forever runs until it is signalled to stop.
const forever = "exec sleep 3600"

// untilFile runs until a file of the host appears, whose name a test chooses.
func untilFile(path string) string {
	return fmt.Sprintf("until [ -e %s ]; do sleep 0.05; done", path)
}

func (w *world) job(name, class string, pods int32, script string, change ...func(*batchv1.Job)) *batchv1.Job {
	w.t.Helper()
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: w.queueLabels(class)},
		Spec: batchv1.JobSpec{
			Parallelism: &pods, Completions: &pods, BackoffLimit: ptr.To[int32](1000),
			Template: corev1.PodTemplateSpec{Spec: podSpec(script)},
		},
	}
	for _, c := range change {
		c(job)
	}
	created, err := w.core.BatchV1().Jobs(w.namespace).Create(w.t.Context(), job, metav1.CreateOptions{})
	w.must(err)
	return created
}

func (w *world) pod(name, class, script string, change ...func(*corev1.Pod)) *corev1.Pod {
	w.t.Helper()
	created, err := w.core.CoreV1().Pods(w.namespace).Create(w.t.Context(), w.podObject(name, class, script, change...), metav1.CreateOptions{})
	w.must(err)
	return created
}

func (w *world) podObject(name, class, script string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: w.queueLabels(class)}, Spec: podSpec(script)}
	for _, c := range change {
		c(pod)
	}
	return pod
}

// eventually looks until look has no complaint.
func (w *world) eventually(what string, look func(ctx context.Context) error) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience.Medium)
	defer cancel()
	if err := await.Until(ctx, what, 25*time.Millisecond, look); err != nil {
		w.t.Fatalf("%v\n%s", err, w.picture())
	}
}

// workloadOf is the Workload of a Job, of a pod, or of the group of this name.
func (w *world) workloadOf(ctx context.Context, owner string) (*kueue.Workload, error) {
	list, err := w.kueue.Workloads(w.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		item := &list.Items[i]
		controller := metav1.GetControllerOf(item)
		if controller != nil && controller.Name == owner || controller == nil && item.Name == owner {
			return item, nil
		}
	}
	return nil, fmt.Errorf("%s has no Workload", owner)
}

// state is a workload's in a word, as the recordings of a real Kueue have it.
func state(item *kueue.Workload) string {
	is := func(kind string) bool { return meta.IsStatusConditionTrue(item.Status.Conditions, kind) }
	switch {
	case is(kueue.WorkloadFinished):
		return "Finished"
	case is(kueue.WorkloadAdmitted):
		return "Admitted"
	case is(kueue.WorkloadQuotaReserved):
		return "QuotaReserved"
	case !ptr.Deref(item.Spec.Active, true):
		return "Deactivated"
	}
	return "Pending"
}

// becomes waits until the Workload of an owner is in a state.
func (w *world) becomes(owner, wanted string) *kueue.Workload {
	w.t.Helper()
	var found *kueue.Workload
	w.eventually(owner+" is "+wanted, func(ctx context.Context) error {
		item, err := w.workloadOf(ctx, owner)
		if err != nil {
			return err
		}
		if state(item) != wanted {
			return fmt.Errorf("it is %s", state(item))
		}
		found = item
		return nil
	})
	return found
}

// condition wants a condition of a workload.
func (w *world) condition(item *kueue.Workload, kind string, status metav1.ConditionStatus, reason, message string) {
	w.t.Helper()
	c := meta.FindStatusCondition(item.Status.Conditions, kind)
	if c == nil || c.Status != status || c.Reason != reason || !strings.Contains(c.Message, message) {
		w.t.Errorf("%s: condition %s is %+v; want %s, %s, %q", item.Name, kind, c, status, reason, message)
	}
}

// running waits until exactly these pods run, among those whose names begin with prefix.
func (w *world) running(prefix string, count int) []corev1.Pod {
	w.t.Helper()
	var found []corev1.Pod
	w.eventually(fmt.Sprintf("%d pods %s… run", count, prefix), func(ctx context.Context) error {
		list, err := w.core.CoreV1().Pods(w.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		found = slices.DeleteFunc(list.Items, func(p corev1.Pod) bool {
			return !strings.HasPrefix(p.Name, prefix) || p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil
		})
		if len(found) != count {
			return fmt.Errorf("%d run", len(found))
		}
		return nil
	})
	return found
}

func (w *world) event(ctx context.Context, object, reason, message string) error {
	list, err := w.core.EventsV1().Events(w.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, e := range list.Items {
		if e.Regarding.Name == object && e.Reason == reason && strings.Contains(e.Note, message) {
			return nil
		}
	}
	return fmt.Errorf("%s has no event %s %q", object, reason, message)
}

// picture is what kubectl would show, for failures.
func (w *world) picture() string {
	ctx, cancel := context.WithTimeout(context.Background(), patience.Short)
	defer cancel()
	var text strings.Builder
	if list, err := w.kueue.Workloads(w.namespace).List(ctx, metav1.ListOptions{}); err == nil {
		for _, item := range list.Items {
			fmt.Fprintf(&text, "Workload %s: %s\n", item.Name, state(&item))
			for _, c := range item.Status.Conditions {
				fmt.Fprintf(&text, "    %s=%s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
			}
		}
	}
	if list, err := w.core.CoreV1().Pods(w.namespace).List(ctx, metav1.ListOptions{}); err == nil {
		for _, p := range list.Items {
			fmt.Fprintf(&text, "Pod %s: %s, gates %v, deleted %v, finalizers %v\n", p.Name, p.Status.Phase, p.Spec.SchedulingGates, p.DeletionTimestamp, p.Finalizers)
		}
	}
	if list, err := w.core.BatchV1().Jobs(w.namespace).List(ctx, metav1.ListOptions{}); err == nil {
		for _, j := range list.Items {
			fmt.Fprintf(&text, "Job %s: suspend %v, %+v\n", j.Name, ptr.Deref(j.Spec.Suspend, false), j.Status.Conditions)
		}
	}
	if log, err := os.ReadFile(filepath.Join(cluster.Dir, "logs", controlplane.QueueController+".log")); err == nil {
		fmt.Fprintf(&text, "The controller said:\n%s", log[max(0, len(log)-4000):])
	}
	return text.String()
}
