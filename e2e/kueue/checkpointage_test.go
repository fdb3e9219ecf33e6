package kueue_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	controllerconstants "sigs.k8s.io/kueue/pkg/controller/constants"

	kueueclient "github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/client"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	rule "github.com/elastic-training/terraform-provider-elastic/internal/scheduler/checkpointage"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/checkpointage"
	"github.com/elastic-training/terraform-provider-elastic/simcluster"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/await"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/controlplane"
)

// TestKueueEvictsTheJobWithTheFreshestCheckpoint runs the controller of elastic-trainer checkpoint-age beside the real Kueue
// with its feature gate PriorityBoost. Of two jobs of a priority, Kueue by itself evicts the one that was admitted last.
func TestKueueEvictsTheJobWithTheFreshestCheckpoint(t *testing.T) {
	cluster := simcluster.Start(t, simcluster.Nodes(3, "4", "15Gi"), simcluster.Image(controlplane.AnyImage, controlplane.HostImage),
		simcluster.KueueFeatureGates("PriorityBoost=true"))
	runCheckpointAge(t, cluster)
	q := newQuota(t, cluster)
	for _, test := range []struct {
		name    string
		reports bool
		victim  string
	}{
		{"no job reports its checkpoints", false, "unsaved"},
		{"both jobs report their checkpoints", true, "saved"},
	} {
		t.Run(test.name, func(t *testing.T) {
			j := q.namespace(t)
			// A time in the future counts as now: a job that saves all the time.
			j.start("saved", "low", test.reports, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
			j.start("unsaved", "low", test.reports, "")
			if test.reports {
				j.await("a boost of the job without a checkpoint", func(ctx context.Context) error { return j.boosted(ctx, "unsaved", "saved") })
			}
			j.start("urgent", "high", false, "")
			for name, evicted := range map[string]bool{"saved": test.victim == "saved", "unsaved": test.victim == "unsaved"} {
				if got := j.suspended(name); got != evicted {
					t.Errorf("job %s: evicted %t, expected %t", name, got, evicted)
				}
			}
		})
	}
}

// runCheckpointAge runs the controller until the test ends: a second of unsaved work is a step.
func runCheckpointAge(t *testing.T, cluster *simcluster.Cluster) {
	t.Helper()
	config, err := cluster.Config()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- checkpointage.Run(ctx, checkpointage.Config{
			REST: config, Rule: rule.Rule{Step: time.Second, Max: 50}, Every: time.Second, Log: slog.New(slog.DiscardHandler),
		})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// quota is a ClusterQueue for two jobs of one CPU, and the clients.
type quota struct {
	cluster *simcluster.Cluster
	kube    kubernetes.Interface
	kueue   *kueueclient.Client
}

const queueName = "team"

func newQuota(t *testing.T, cluster *simcluster.Cluster) *quota {
	t.Helper()
	kube, err := cluster.Client()
	if err != nil {
		t.Fatal(err)
	}
	client, err := cluster.Kueue()
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]int32{"low": 1000, "high": 100_000} {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
		if _, err := kube.SchedulingV1().PriorityClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	named := metav1.ObjectMeta{Name: queueName}
	if _, err := client.ResourceFlavors().Create(t.Context(), &kueue.ResourceFlavor{ObjectMeta: named}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err = client.ClusterQueues().Create(t.Context(), &kueue.ClusterQueue{ObjectMeta: named, Spec: kueue.ClusterQueueSpec{
		NamespaceSelector: &metav1.LabelSelector{},
		Preemption:        &kueue.ClusterQueuePreemption{WithinClusterQueue: kueue.PreemptionPolicyLowerPriority},
		ResourceGroups: []kueue.ResourceGroup{{
			CoveredResources: []corev1.ResourceName{corev1.ResourceCPU},
			Flavors: []kueue.FlavorQuotas{{Name: queueName, Resources: []kueue.ResourceQuota{
				{Name: corev1.ResourceCPU, NominalQuota: resource.MustParse("2")},
			}}},
		}},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return &quota{cluster: cluster, kube: kube, kueue: client}
}

// A namespace has a LocalQueue, and jobs until the test ends.
type namespace struct {
	*quota
	t    *testing.T
	name string
}

func (q *quota) namespace(t *testing.T) *namespace {
	t.Helper()
	j := &namespace{quota: q, t: t, name: q.cluster.Namespace(t)}
	queue := &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: queueName}, Spec: kueue.LocalQueueSpec{ClusterQueue: queueName}}
	if _, err := q.kueue.LocalQueues(j.name).Create(t.Context(), queue, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(j.clear)
	return j
}

// clear deletes the jobs, and waits until their quota is free.
func (j *namespace) clear() {
	ctx, cancel := context.WithTimeout(context.Background(), patience.Medium)
	defer cancel()
	background := metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}
	err := j.kube.BatchV1().Jobs(j.name).DeleteCollection(ctx, background, metav1.ListOptions{})
	if err == nil {
		err = await.Until(ctx, "the workloads are gone", 20*time.Millisecond, func(ctx context.Context) error {
			left, err := j.kueue.Workloads(j.name).List(ctx, metav1.ListOptions{})
			if err == nil && len(left.Items) > 0 {
				err = fmt.Errorf("there are %d", len(left.Items))
			}
			return err
		})
	}
	if err != nil {
		j.t.Error(err)
	}
}

// start creates a job of one CPU and waits until Kueue has admitted it. With reports it says when it saved a checkpoint.
func (j *namespace) start(name, class string, reports bool, checkpoint string) {
	j.t.Helper()
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{controllerconstants.QueueLabel: queueName}},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, PriorityClassName: class, TerminationGracePeriodSeconds: new(int64(1)),
			Containers: []corev1.Container{{
				Name: "main", Image: "any", Command: []string{"sleep", "3600"},
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
			}},
		}}},
	}
	if reports {
		job.Annotations = map[string]string{trainingjob.AnnotationLastCheckpoint: checkpoint}
	}
	if _, err := j.kube.BatchV1().Jobs(j.name).Create(j.t.Context(), job, metav1.CreateOptions{}); err != nil {
		j.t.Fatal(err)
	}
	j.await("job "+name+" is admitted", func(ctx context.Context) error {
		job, err := j.kube.BatchV1().Jobs(j.name).Get(ctx, name, metav1.GetOptions{})
		if err == nil && *job.Spec.Suspend {
			err = fmt.Errorf("it is suspended")
		}
		return err
	})
}

// suspended reports whether a job that was admitted has lost its quota. Kueue evicts before it admits.
func (j *namespace) suspended(name string) bool {
	j.t.Helper()
	job, err := j.kube.BatchV1().Jobs(j.name).Get(j.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		j.t.Fatal(err)
	}
	return *job.Spec.Suspend
}

// boosted is an error unless one job has a boost and another has none.
func (j *namespace) boosted(ctx context.Context, one, other string) error {
	workloads, err := j.kueue.Workloads(j.name).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	boosts := map[string]string{}
	for i := range workloads.Items {
		w := &workloads.Items[i]
		if meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadAdmitted) && len(w.OwnerReferences) == 1 {
			boosts[w.OwnerReferences[0].Name] = w.Annotations[controllerconstants.PriorityBoostAnnotationKey]
		}
	}
	if boosts[one] == "" || boosts[other] != "" {
		return fmt.Errorf("the boosts are %v", boosts)
	}
	return nil
}

func (j *namespace) await(what string, look func(context.Context) error) {
	j.t.Helper()
	ctx, cancel := context.WithTimeout(j.t.Context(), patience.Medium)
	defer cancel()
	if err := await.Until(ctx, what, 20*time.Millisecond, look); err != nil {
		j.t.Fatal(err)
	}
}
