package fakekueue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
)

// active wants a queue's condition Active.
func active(conditions []metav1.Condition, status metav1.ConditionStatus, reason, message string) error {
	c := meta.FindStatusCondition(conditions, kueue.ConditionActive)
	if c == nil || c.Status != status || c.Reason != reason || !strings.Contains(c.Message, message) {
		return fmt.Errorf("Active is %+v; want %s, %s, %q", c, status, reason, message)
	}
	return nil
}

func (w *world) queueIs(status metav1.ConditionStatus, reason, message string) {
	w.t.Helper()
	w.eventually("the ClusterQueue is "+reason, func(ctx context.Context) error {
		q, err := w.kueue.ClusterQueues().Get(ctx, w.global("cq"), metav1.GetOptions{})
		if err != nil {
			return err
		}
		return active(q.Status.Conditions, status, reason, message)
	})
}

func (w *world) localQueueIs(status metav1.ConditionStatus, reason, message string) {
	w.t.Helper()
	w.eventually("the LocalQueue is "+reason, func(ctx context.Context) error {
		q, err := w.kueue.LocalQueues(w.namespace).Get(ctx, queueName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return active(q.Status.Conditions, status, reason, message)
	})
}

func TestQueuesSayWhatTheyLack(t *testing.T) {
	t.Parallel()
	w := newNamespace(t)
	w.localQueue(queueName, "cq")
	w.localQueueIs(metav1.ConditionFalse, "ClusterQueueDoesNotExist", "Can't submit new workloads to clusterQueue")
	w.job("early", "", 1, forever)
	w.eventually("its workload says that the queue is missing", func(ctx context.Context) error {
		item, err := w.workloadOf(ctx, "early")
		if err != nil {
			return err
		}
		c := meta.FindStatusCondition(item.Status.Conditions, kueue.WorkloadQuotaReserved)
		if c == nil || c.Reason != "Inadmissible" || c.Message != "ClusterQueue "+w.global("cq")+" doesn't exist" {
			return fmt.Errorf("QuotaReserved is %+v", c)
		}
		return nil
	})
	w.clusterQueue("cq", w.quota("4"), func(q *kueue.ClusterQueue) {
		q.Spec.AdmissionChecksStrategy = &kueue.AdmissionChecksStrategy{AdmissionChecks: []kueue.AdmissionCheckStrategyRule{{Name: kueue.AdmissionCheckReference(w.global("check"))}}}
	})
	w.queueIs(metav1.ConditionFalse, "FlavorNotFound", "Can't admit new workloads: references missing ResourceFlavor(s): "+w.global("default")+", references missing AdmissionCheck(s): "+w.global("check"))
	w.localQueueIs(metav1.ConditionFalse, "ClusterQueueIsInactive", "")
	w.flavor("default", kueue.ResourceFlavorSpec{})
	w.queueIs(metav1.ConditionFalse, "AdmissionCheckNotFound", "")

	check, err := w.kueue.AdmissionChecks().Create(t.Context(), &kueue.AdmissionCheck{ObjectMeta: metav1.ObjectMeta{Name: w.global("check")}, Spec: kueue.AdmissionCheckSpec{ControllerName: "example.com/tests"}}, metav1.CreateOptions{})
	w.must(err)
	w.queueIs(metav1.ConditionFalse, "AdmissionCheckInactive", "")
	w.eventually("the check says that it is active", func(ctx context.Context) error {
		if check, err = w.kueue.AdmissionChecks().Get(ctx, check.Name, metav1.GetOptions{}); err != nil {
			return err
		}
		meta.SetStatusCondition(&check.Status.Conditions, metav1.Condition{Type: kueue.ConditionActive, Status: metav1.ConditionTrue, Reason: "Active", Message: "it checks"})
		_, err = w.kueue.AdmissionChecks().UpdateStatus(ctx, check, metav1.UpdateOptions{})
		return err
	})
	w.queueIs(metav1.ConditionTrue, "Ready", "Can admit new workloads")
	w.localQueueIs(metav1.ConditionTrue, "Ready", "Can submit new workloads to localQueue")

	t.Log("a workload holds its quota until the check is ready")
	item := w.becomes("early", "QuotaReserved")
	if len(item.Status.AdmissionChecks) != 1 || item.Status.AdmissionChecks[0].State != kueue.CheckStatePending {
		t.Errorf("checks %+v", item.Status.AdmissionChecks)
	}
	w.eventually("the check is ready", func(ctx context.Context) error {
		item, err := w.workloadOf(ctx, "early")
		if err != nil {
			return err
		}
		item.Status.AdmissionChecks[0].State = kueue.CheckStateReady
		item.Status.AdmissionChecks[0].LastTransitionTime = metav1.Now()
		_, err = w.kueue.Workloads(w.namespace).UpdateStatus(ctx, item, metav1.UpdateOptions{})
		return err
	})
	w.becomes("early", "Admitted")
	w.running("early-", 1)
}

func TestAQueueThatIsStoppedKeepsOrDrainsWhatItHas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.job("running", "low", 2, forever)
	w.becomes("running", "Admitted")
	stop := func(policy kueue.StopPolicy) {
		w.changeQueue("cq", func(q *kueue.ClusterQueue) { q.Spec.StopPolicy = ptr.To(policy) })
	}
	stop(kueue.Hold)
	w.queueIs(metav1.ConditionFalse, "Stopped", "Can't admit new workloads: is stopped.")
	w.job("second", "low", 1, forever)
	w.eventually("a new workload is not considered", func(ctx context.Context) error {
		item, err := w.workloadOf(ctx, "second")
		if err != nil {
			return err
		}
		c := meta.FindStatusCondition(item.Status.Conditions, kueue.WorkloadQuotaReserved)
		if c == nil || c.Message != "ClusterQueue "+w.global("cq")+" is inactive" {
			return fmt.Errorf("QuotaReserved is %+v", c)
		}
		return nil
	})
	w.becomes("running", "Admitted")
	stop(kueue.HoldAndDrain)
	drained := w.becomes("running", "Pending")
	w.condition(drained, kueue.WorkloadEvicted, metav1.ConditionTrue, "ClusterQueueStopped", "The ClusterQueue is stopped")
	w.eventually("it does not queue", func(ctx context.Context) error {
		item, err := w.workloadOf(ctx, "running")
		if err != nil {
			return err
		}
		if c := meta.FindStatusCondition(item.Status.Conditions, kueue.WorkloadRequeued); c == nil || c.Status != metav1.ConditionFalse || c.Reason != "ClusterQueueStopped" {
			return fmt.Errorf("Requeued is %+v", c)
		}
		return nil
	})
	stop(kueue.None)
	again := w.becomes("running", "Admitted")
	w.condition(again, kueue.WorkloadRequeued, metav1.ConditionTrue, "ClusterQueueRestarted", "The ClusterQueue was restarted after being stopped")
	w.becomes("second", "Admitted")

	t.Log("a LocalQueue likewise")
	stopLocal := func(policy kueue.StopPolicy) {
		w.eventually("the LocalQueue is changed", func(ctx context.Context) error {
			q, err := w.kueue.LocalQueues(w.namespace).Get(ctx, queueName, metav1.GetOptions{})
			if err != nil {
				return err
			}
			q.Spec.StopPolicy = ptr.To(policy)
			_, err = w.kueue.LocalQueues(w.namespace).Update(ctx, q, metav1.UpdateOptions{})
			return err
		})
	}
	stopLocal(kueue.HoldAndDrain)
	w.localQueueIs(metav1.ConditionFalse, "Stopped", "LocalQueue is stopped")
	w.condition(w.becomes("second", "Pending"), kueue.WorkloadEvicted, metav1.ConditionTrue, "LocalQueueStopped", "The LocalQueue is stopped")
	stopLocal(kueue.None)
	w.becomes("second", "Admitted")
	w.becomes("running", "Admitted")
}

func TestAWorkloadThatIsDeactivatedStopsUntilItIsActivated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.job("paused", "low", 2, forever)
	w.becomes("paused", "Admitted")
	activate := func(value bool) {
		w.eventually("spec.active is changed", func(ctx context.Context) error {
			item, err := w.workloadOf(ctx, "paused")
			if err != nil {
				return err
			}
			item.Spec.Active = &value
			_, err = w.kueue.Workloads(w.namespace).Update(ctx, item, metav1.UpdateOptions{})
			return err
		})
	}
	activate(false)
	item := w.becomes("paused", "Deactivated")
	w.condition(item, kueue.WorkloadEvicted, metav1.ConditionTrue, "Deactivated", "The workload is deactivated")
	w.eventually("its Job is suspended", func(ctx context.Context) error {
		job, err := w.core.BatchV1().Jobs(w.namespace).Get(ctx, "paused", metav1.GetOptions{})
		if err == nil && (!ptr.Deref(job.Spec.Suspend, false) || job.Status.Active > 0) {
			err = errors.New("it is not")
		}
		return err
	})
	activate(true)
	again := w.becomes("paused", "Admitted")
	w.condition(again, kueue.WorkloadRequeued, metav1.ConditionTrue, "Reactivated", "The workload was reactivated")

	t.Log("and one that runs for too long is")
	w.job("long", "low", 1, forever, func(job *batchv1.Job) { job.Labels[kueue.MaxExecTimeSecondsLabel] = "1" })
	long := w.becomes("long", "Deactivated")
	w.condition(long, kueue.WorkloadEvicted, metav1.ConditionTrue, "DeactivatedDueToMaximumExecutionTimeExceeded", "The workload is deactivated due to exceeding the maximum execution time")
}

func TestFlavorsAndQueuesStayWhileTheyAreInUse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.job("user", "low", 1, forever)
	w.becomes("user", "Admitted")
	w.must(w.kueue.ResourceFlavors().Delete(t.Context(), w.global("default"), metav1.DeleteOptions{}))
	w.must(w.kueue.ClusterQueues().Delete(t.Context(), w.global("cq"), metav1.DeleteOptions{}))
	w.queueIs(metav1.ConditionFalse, "Terminating", "Can't admit new workloads; clusterQueue is terminating")
	if _, err := w.kueue.ResourceFlavors().Get(t.Context(), w.global("default"), metav1.GetOptions{}); err != nil {
		t.Errorf("the flavor: %v", err)
	}
	w.must(w.core.BatchV1().Jobs(w.namespace).Delete(t.Context(), "user", metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}))
	w.eventually("both are gone", func(ctx context.Context) error {
		_, errQueue := w.kueue.ClusterQueues().Get(ctx, w.global("cq"), metav1.GetOptions{})
		_, errFlavor := w.kueue.ResourceFlavors().Get(ctx, w.global("default"), metav1.GetOptions{})
		if !apierrors.IsNotFound(errQueue) || !apierrors.IsNotFound(errFlavor) {
			return fmt.Errorf("queue: %w, flavor: %w", errQueue, errFlavor)
		}
		return nil
	})
}

func TestQueuesOfACohortLendAndReclaim(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(q *kueue.ClusterQueue) {
		q.Spec.CohortName = kueue.CohortReference(strings.TrimSuffix(q.Name, "-cq"))
		q.Spec.Preemption.ReclaimWithinCohort = kueue.PreemptionPolicyAny
	})
	w.clusterQueue("other", w.quota("4"), func(q *kueue.ClusterQueue) { q.Spec.CohortName = kueue.CohortReference(w.namespace) })
	w.localQueue("borrower", "other")
	borrower := func(job *batchv1.Job) { job.Labels[kueue.QueueLabel] = "borrower" }
	w.job("borrowing", "high", 6, forever, borrower)
	w.becomes("borrowing", "Admitted")
	w.eventually("the queue says what it borrows", func(ctx context.Context) error {
		q, err := w.kueue.ClusterQueues().Get(ctx, w.global("other"), metav1.GetOptions{})
		if err == nil && (len(q.Status.FlavorsUsage) == 0 || q.Status.FlavorsUsage[0].Resources[0].Borrowed.String() != "2") {
			err = fmt.Errorf("usage %+v", q.Status.FlavorsUsage)
		}
		return err
	})
	w.job("owner", "low", 4, forever)
	w.becomes("owner", "Admitted")
	evicted := w.becomes("borrowing", "Pending")
	w.condition(evicted, kueue.WorkloadPreempted, metav1.ConditionTrue, "InCohortReclamation", "due to reclamation within the cohort")
}

// facts/kueue.md §1 G: as recorded on a real Kueue. 422 is the API server's own answer, from the CRD; 403 a webhook's.
func TestWhatKueueRefusesIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	quota := func(q *kueue.ClusterQueue) *kueue.ResourceQuota {
		return &q.Spec.ResourceGroups[0].Flavors[0].Resources[0]
	}
	limit := ptr.To(resource.MustParse("1"))
	for name, c := range map[string]struct {
		code    int32
		message string
		change  func(*kueue.ClusterQueue)
	}{
		"a borrowing limit without a cohort": {422, "borrowingLimit", func(q *kueue.ClusterQueue) { quota(q).BorrowingLimit = limit }},
		"fewer resources than are covered":   {422, "coveredResources", func(q *kueue.ClusterQueue) { r := &q.Spec.ResourceGroups[0].Flavors[0].Resources; *r = (*r)[:1] }},
		"borrowing within the cohort without reclaim": {422, "reclaimWithinCohort", func(q *kueue.ClusterQueue) {
			q.Spec.Preemption.BorrowWithinCohort = &kueue.BorrowWithinCohort{Policy: kueue.BorrowWithinCohortPolicyLowerPriority}
		}},
		"an unknown strategy":              {422, "queueingStrategy", func(q *kueue.ClusterQueue) { q.Spec.QueueingStrategy = "Fair" }},
		"a lending limit without a cohort": {403, "lendingLimit", func(q *kueue.ClusterQueue) { quota(q).LendingLimit = limit }},
		"a lending limit above the nominal quota": {403, "lendingLimit", func(q *kueue.ClusterQueue) {
			q.Spec.CohortName = "c"
			quota(q).LendingLimit = ptr.To(resource.MustParse("5"))
		}},
		"resources in another order than they are covered": {403, "resources", func(q *kueue.ClusterQueue) {
			r := q.Spec.ResourceGroups[0].Flavors[0].Resources
			r[0], r[1] = r[1], r[0]
		}},
		"a flavor in two groups": {403, "flavors", func(q *kueue.ClusterQueue) {
			g := *q.Spec.ResourceGroups[0].DeepCopy()
			g.CoveredResources = []corev1.ResourceName{gpu}
			g.Flavors[0].Resources = []kueue.ResourceQuota{{Name: gpu, NominalQuota: resource.MustParse("1")}}
			q.Spec.ResourceGroups = append(q.Spec.ResourceGroups, g)
		}},
		"a negative quota": {403, "nominalQuota", func(q *kueue.ClusterQueue) { quota(q).NominalQuota = resource.MustParse("-1") }},
	} {
		t.Run(name, func(t *testing.T) {
			q := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: w.global("refused")}, Spec: kueue.ClusterQueueSpec{Preemption: &kueue.ClusterQueuePreemption{}}}
			w.quota("4")(q)
			c.change(q)
			_, err := w.kueue.ClusterQueues().Create(t.Context(), q, metav1.CreateOptions{})
			var status apierrors.APIStatus
			if !errors.As(err, &status) || status.Status().Code != c.code || !strings.Contains(err.Error(), c.message) {
				t.Errorf("%v; want %d about %s", err, c.code, c.message)
			}
			if c.code == 403 && !strings.Contains(err.Error(), `admission webhook "vclusterqueue.kb.io" denied the request`) {
				t.Error(err)
			}
		})
	}
	t.Run("another ClusterQueue for a LocalQueue", func(t *testing.T) {
		q, err := w.kueue.LocalQueues(w.namespace).Get(t.Context(), queueName, metav1.GetOptions{})
		if err == nil {
			q.Spec.ClusterQueue = "another"
			_, err = w.kueue.LocalQueues(w.namespace).Update(t.Context(), q, metav1.UpdateOptions{})
		}
		if !apierrors.IsInvalid(err) {
			t.Error(err)
		}
	})
	t.Run("a minimum of pods that is not below the Job's parallelism", func(t *testing.T) {
		job := &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: "refused", Labels: w.queueLabels("low"), Annotations: map[string]string{kueue.JobMinParallelismAnnotation: "2"}},
			Spec:       batchv1.JobSpec{Parallelism: ptr.To[int32](2), Template: corev1.PodTemplateSpec{Spec: podSpec(forever)}},
		}
		_, err := w.core.BatchV1().Jobs(w.namespace).Create(t.Context(), job, metav1.CreateOptions{})
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "should be between 0 and 1") || !strings.Contains(err.Error(), `"vjob.kb.io" denied the request`) {
			t.Error(err)
		}
	})
	t.Run("another queue for a Job that runs", func(t *testing.T) {
		w.job("settled", "low", 1, forever)
		w.becomes("settled", "Admitted")
		w.running("settled-", 1)
		w.eventually("the API server refuses", func(ctx context.Context) error {
			job, err := w.core.BatchV1().Jobs(w.namespace).Get(ctx, "settled", metav1.GetOptions{})
			if err != nil {
				return err
			}
			job.Labels[kueue.QueueLabel] = "another"
			_, err = w.core.BatchV1().Jobs(w.namespace).Update(ctx, job, metav1.UpdateOptions{})
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "field is immutable") {
				return fmt.Errorf("it said %w", err)
			}
			return nil
		})
	})
	t.Run("a group's total on a pod without a group", func(t *testing.T) {
		pod := w.podObject("refused", "low", forever, func(pod *corev1.Pod) {
			pod.Annotations = map[string]string{kueue.PodGroupTotalCountAnnotation: "2"}
		})
		_, err := w.core.CoreV1().Pods(w.namespace).Create(t.Context(), pod, metav1.CreateOptions{})
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "both the 'kueue.x-k8s.io/pod-group-total-count' annotation and the 'kueue.x-k8s.io/pod-group-name' label should be set") {
			t.Error(err)
		}
	})
}
