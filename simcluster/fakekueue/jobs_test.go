package fakekueue_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
)

// finishLine is a file that ends what waits for it.
func finishLine(t *testing.T) (path string, cross func()) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "over")
	return path, func() {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// facts/kueue.md §1 A: as seen on a real Kueue.
func TestAHighJobTakesTheQuotaOfALowOneUntilItIsDone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.job("low", "low", 3, forever)
	admitted := w.becomes("low", "Admitted")
	w.condition(admitted, kueue.WorkloadQuotaReserved, metav1.ConditionTrue, "QuotaReserved", "Quota reserved in ClusterQueue "+w.global("cq"))
	w.condition(admitted, kueue.WorkloadAdmitted, metav1.ConditionTrue, "Admitted", "The workload is admitted")
	if a := admitted.Status.Admission; string(a.ClusterQueue) != w.global("cq") || len(a.PodSetAssignments) != 1 ||
		ptr.Deref(a.PodSetAssignments[0].Count, 0) != 3 || a.PodSetAssignments[0].ResourceUsage.Cpu().String() != "3" {
		t.Errorf("admission %+v", a)
	}
	before := w.running("low-", 3)
	for _, pod := range before {
		if pod.Labels[kueue.PodSetLabel] != "main" || pod.Labels[kueue.LocalQueueLabel] != queueName || pod.Labels[kueue.ClusterQueueLabel] != w.global("cq") {
			t.Errorf("labels of pod %s: %v", pod.Name, pod.Labels)
		}
	}

	line, cross := finishLine(t)
	w.job("high", "high", 4, untilFile(line))
	w.becomes("high", "Admitted")
	w.running("high-", 4)
	w.eventually("low waits for the quota it lost", func(ctx context.Context) error {
		low, err := w.workloadOf(ctx, "low")
		if err != nil {
			return err
		}
		return waits(low, "insufficient unused quota for cpu in flavor "+w.global("default")+", 3 more needed")
	})
	low := w.becomes("low", "Pending")
	w.condition(low, kueue.WorkloadEvicted, metav1.ConditionTrue, "Preempted", "Preempted to accommodate a workload (UID: ")
	w.condition(low, kueue.WorkloadPreempted, metav1.ConditionTrue, "InClusterQueue", "due to prioritization in the ClusterQueue; preemptor path: /"+w.global("cq"))
	w.condition(low, kueue.WorkloadRequeued, metav1.ConditionTrue, "Preempted", "")
	w.condition(low, kueue.WorkloadAdmitted, metav1.ConditionFalse, "NoReservation", "The workload has no reservation")
	if stats := low.Status.SchedulingStats; stats == nil || len(stats.Evictions) != 1 || stats.Evictions[0].Reason != "Preempted" || stats.Evictions[0].Count != 1 {
		t.Errorf("schedulingStats %+v", stats)
	}
	if !low.CreationTimestamp.Equal(&admitted.CreationTimestamp) || low.UID != admitted.UID {
		t.Error("the Workload is another one after its eviction")
	}
	w.eventually("low's pod template is restored", func(ctx context.Context) error {
		job, err := w.core.BatchV1().Jobs(w.namespace).Get(ctx, "low", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !ptr.Deref(job.Spec.Suspend, false) || job.Spec.Template.Labels[kueue.PodSetLabel] != "" || job.Status.StartTime != nil {
			return fmt.Errorf("suspend %v, template's labels %v, started %v", job.Spec.Suspend, job.Spec.Template.Labels, job.Status.StartTime)
		}
		return nil
	})
	w.eventually("users read it in the events", func(ctx context.Context) error {
		highs, err := w.workloadOf(ctx, "high")
		if err != nil {
			return err
		}
		return errors.Join(
			w.event(ctx, low.Name, "EvictedDueToPreempted", "Preempted to accommodate"),
			w.event(ctx, low.Name, "Preempted", "preemptor effective priority: 1000 (base: 1000, boost: 0); preemptee effective priority: 10"),
			w.event(ctx, low.Name, "Pending", "insufficient unused quota"),
			w.event(ctx, highs.Name, "PreemptedWorkload", low.Name),
			w.event(ctx, highs.Name, "QuotaReserved", "Quota reserved in ClusterQueue"),
			w.event(ctx, highs.Name, "Admitted", "wait time since reservation was 0s"),
			w.event(ctx, "low", "Started", "Admitted by clusterQueue"),
			w.event(ctx, "low", "Stopped", "Preempted to accommodate"),
			w.event(ctx, "low", "CreatedWorkload", "Created Workload: "+w.namespace+"/job-low-"))
	})

	cross()
	high := w.becomes("high", "Finished")
	w.condition(high, kueue.WorkloadFinished, metav1.ConditionTrue, "Succeeded", "")
	if len(high.Finalizers) > 0 {
		w.eventually("the finished workload is let go", func(ctx context.Context) error {
			item, err := w.workloadOf(ctx, "high")
			if err == nil && len(item.Finalizers) > 0 {
				err = fmt.Errorf("finalizers %v", item.Finalizers)
			}
			return err
		})
	}
	again := w.becomes("low", "Admitted")
	w.condition(again, kueue.WorkloadEvicted, metav1.ConditionFalse, "QuotaReserved", "Previously: Preempted to accommodate")
	w.condition(again, kueue.WorkloadPreempted, metav1.ConditionFalse, "QuotaReserved", "Previously: Preempted to accommodate")
	w.condition(again, kueue.WorkloadRequeued, metav1.ConditionTrue, "Preempted", "")
	w.running("low-", 3)
}

// waits wants a workload to wait, with a message.
func waits(item *kueue.Workload, message string) error {
	for _, c := range item.Status.Conditions {
		if c.Type == kueue.WorkloadQuotaReserved && c.Status == metav1.ConditionFalse && c.Reason == "Pending" &&
			c.Message == "couldn't assign flavors to pod set main: "+message {
			return nil
		}
	}
	return fmt.Errorf("conditions are %+v", item.Status.Conditions)
}

func TestKubectlShowsWorkloadsAsKueueDoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.job("shown", "low", 1, forever)
	item := w.becomes("shown", "Admitted")
	text, err := w.core.BatchV1().RESTClient().Get().AbsPath("/apis/kueue.x-k8s.io/v1beta2/namespaces/"+w.namespace+"/workloads").
		SetHeader("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1").DoRaw(t.Context())
	w.must(err)
	var table metav1.Table
	w.must(json.Unmarshal(text, &table))
	var columns []string
	for _, c := range table.ColumnDefinitions {
		if c.Priority == 0 {
			columns = append(columns, c.Name)
		}
	}
	if !slices.Equal(columns, []string{"Name", "Queue", "Reserved in", "Admitted", "Finished", "Age"}) {
		t.Errorf("columns %q", columns)
	}
	if len(table.Rows) != 1 || fmt.Sprint(table.Rows[0].Cells[:4]...) != fmt.Sprint(item.Name, queueName, w.global("cq"), "True") {
		t.Errorf("rows %+v", table.Rows)
	}
}

func TestAnAdmittedJobGetsTheLabelsOfItsFlavor(t *testing.T) {
	t.Parallel()
	w := newNamespace(t)
	w.flavor("t4", kueue.ResourceFlavorSpec{
		NodeLabels:  map[string]string{gpuLabel: gpuKind},
		NodeTaints:  []corev1.Taint{{Key: gpu, Value: "present", Effect: corev1.TaintEffectNoSchedule}},
		Tolerations: []corev1.Toleration{{Key: gpu, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}},
	})
	w.clusterQueue("cq", func(q *kueue.ClusterQueue) {
		q.Spec.ResourceGroups = []kueue.ResourceGroup{{
			CoveredResources: []corev1.ResourceName{corev1.ResourceCPU, gpu},
			Flavors: []kueue.FlavorQuotas{{Name: kueue.ResourceFlavorReference(w.global("t4")), Resources: []kueue.ResourceQuota{
				{Name: corev1.ResourceCPU, NominalQuota: resource.MustParse("16")}, {Name: gpu, NominalQuota: resource.MustParse("4")},
			}}},
		}}
	})
	w.localQueue(queueName, "cq")
	fourGPUs := func(job *batchv1.Job) {
		job.Spec.Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{gpu: resource.MustParse("4")}
	}
	w.job("train", "", 1, forever, fourGPUs)
	w.becomes("train", "Admitted")
	pod := w.running("train-", 1)[0]
	if pod.Spec.NodeName != gpuNodes+"-1" || pod.Spec.NodeSelector[gpuLabel] != gpuKind ||
		!slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool { return t.Key == gpu }) {
		t.Errorf("pod on %q, selector %v, tolerations %v", pod.Spec.NodeName, pod.Spec.NodeSelector, pod.Spec.Tolerations)
	}
	w.job("next", "", 1, forever, fourGPUs)
	w.eventually("another waits for the GPUs", func(ctx context.Context) error {
		next, err := w.workloadOf(ctx, "next")
		if err != nil {
			return err
		}
		return waits(next, "insufficient unused quota for nvidia.com/gpu in flavor "+w.global("t4")+", 4 more needed")
	})
	w.eventually("the queues count them", func(ctx context.Context) error {
		queue, err := w.kueue.ClusterQueues().Get(ctx, w.global("cq"), metav1.GetOptions{})
		if err != nil {
			return err
		}
		local, err := w.kueue.LocalQueues(w.namespace).Get(ctx, queueName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if s := queue.Status; s.PendingWorkloads != 1 || s.ReservingWorkloads != 1 || s.AdmittedWorkloads != 1 ||
			len(s.FlavorsUsage) != 1 || s.FlavorsUsage[0].Resources[1].Total.String() != "4" || len(s.FlavorsReservation) != 1 {
			return fmt.Errorf("ClusterQueue %+v", s)
		}
		if s := local.Status; s.PendingWorkloads != 1 || s.AdmittedWorkloads != 1 || len(s.FlavorsReservation) != 1 || s.FlavorsReservation[0].Resources[1].Total.String() != "4" {
			return fmt.Errorf("LocalQueue %+v", s)
		}
		return nil
	})
}

func TestAJobIsAdmittedWithFewerPodsWhereItMayBe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	partial := func(job *batchv1.Job) {
		job.Annotations = map[string]string{kueue.JobMinParallelismAnnotation: "2"}
	}
	w.job("partial", "low", 6, forever, partial)
	item := w.becomes("partial", "Admitted")
	if count := ptr.Deref(item.Status.Admission.PodSetAssignments[0].Count, 0); count != 4 || item.Spec.PodSets[0].Count != 6 || ptr.Deref(item.Spec.PodSets[0].MinCount, 0) != 2 {
		t.Errorf("admitted with %d pods; spec %+v", count, item.Spec.PodSets[0])
	}
	w.running("partial-", 4)
	w.job("high", "high", 4, forever)
	w.becomes("high", "Admitted")
	w.eventually("the Job has its parallelism back", func(ctx context.Context) error {
		job, err := w.core.BatchV1().Jobs(w.namespace).Get(ctx, "partial", metav1.GetOptions{})
		if err == nil && *job.Spec.Parallelism != 6 {
			err = fmt.Errorf("parallelism %d", *job.Spec.Parallelism)
		}
		return err
	})
	w.becomes("partial", "Pending")
}

func TestAJobThatNamesNoQueueIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.job("free", "", 1, forever, func(job *batchv1.Job) { job.Labels = nil })
	w.running("free-", 1)
	if item, err := w.workloadOf(t.Context(), "free"); err == nil {
		t.Errorf("it has Workload %s", item.Name)
	}
}

func TestTheQueueCalledDefaultTakesJobsAndPodsThatNameNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.localQueue("default", "cq")
	// The API server hears of it by the webhook's configuration, a moment later.
	w.eventually("a Job is given the queue default", func(ctx context.Context) error {
		job, err := w.core.BatchV1().Jobs(w.namespace).Create(ctx, &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "unnamed-"},
			Spec:       batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: podSpec(forever)}},
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		if job.Labels[kueue.QueueLabel] == "default" && ptr.Deref(job.Spec.Suspend, false) {
			w.becomes(job.Name, "Admitted")
			return nil
		}
		w.must(w.core.BatchV1().Jobs(w.namespace).Delete(ctx, job.Name, metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}))
		return fmt.Errorf("labels %v", job.Labels)
	})
	pod := w.pod("unnamed", "", forever, func(pod *corev1.Pod) { pod.Labels = nil })
	if pod.Labels[kueue.QueueLabel] != "default" || pod.Labels[kueue.ManagedLabel] != "true" {
		t.Errorf("labels of the pod: %v", pod.Labels)
	}
	w.becomes("unnamed", "Admitted")
	// The pods of the Job belong to the Job's workload.
	for _, owned := range w.running("unnamed-", 1) {
		if len(owned.Finalizers) > 1 || owned.Labels[kueue.ManagedLabel] != "" {
			t.Errorf("pod %s of the Job: finalizers %v, labels %v", owned.Name, owned.Finalizers, owned.Labels)
		}
	}
}

func TestAJobWithAnUnknownClassWaitsWithoutAWorkload(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	job := w.job("early", "later", 1, forever)
	if !ptr.Deref(job.Spec.Suspend, false) {
		t.Error("the Job is not suspended")
	}
	w.job("ordinary", "low", 1, forever)
	w.becomes("ordinary", "Admitted")
	if item, err := w.workloadOf(t.Context(), "early"); err == nil {
		t.Errorf("it has Workload %s", item.Name)
	}
	w.class("later", 7)
	if item := w.becomes("early", "Admitted"); ptr.Deref(item.Spec.Priority, 0) != 7 {
		t.Errorf("priority %v", item.Spec.Priority)
	}
}

func TestAJobsClassMayBeChangedWhileItRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.job("changing", "low", 4, forever)
	w.becomes("changing", "Admitted")
	w.eventually("the label is changed", func(ctx context.Context) error {
		job, err := w.core.BatchV1().Jobs(w.namespace).Get(ctx, "changing", metav1.GetOptions{})
		if err != nil {
			return err
		}
		job.Labels[kueue.WorkloadPriorityClassLabel] = w.global("high")
		_, err = w.core.BatchV1().Jobs(w.namespace).Update(ctx, job, metav1.UpdateOptions{})
		return err
	})
	w.eventually("the workload has the new priority", func(ctx context.Context) error {
		item, err := w.workloadOf(ctx, "changing")
		if err == nil && (ptr.Deref(item.Spec.Priority, 0) != 1000 || item.Spec.PriorityClassRef.Name != w.global("high")) {
			err = fmt.Errorf("priority %d", *item.Spec.Priority)
		}
		return err
	})
	w.job("second", "high", 1, forever)
	w.eventually("an equal one cannot evict it", func(ctx context.Context) error {
		second, err := w.workloadOf(ctx, "second")
		if err != nil {
			return err
		}
		return waits(second, "insufficient unused quota for cpu in flavor "+w.global("default")+", 1 more needed")
	})
	w.becomes("changing", "Admitted")
}

func TestADeletedJobGivesItsQuotaBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.job("first", "low", 4, forever)
	w.becomes("first", "Admitted")
	w.job("second", "low", 4, forever)
	w.becomes("second", "Pending")
	w.must(w.core.BatchV1().Jobs(w.namespace).Delete(t.Context(), "first", metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}))
	w.becomes("second", "Admitted")
	w.eventually("the Workload goes with its Job", func(ctx context.Context) error {
		if item, err := w.workloadOf(ctx, "first"); err == nil {
			return fmt.Errorf("there is %s", item.Name)
		}
		return nil
	})
}
