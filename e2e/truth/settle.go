package truth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
)

var (
	// calm is how long a settled cluster must have had no change: controllers act within milliseconds.
	calm = 400 * time.Millisecond
	// longCalm is the same if only the absence of changes shows that nothing more comes.
	longCalm = patience.Scaled(1500 * time.Millisecond)
	// longestCalm is the same if a controller should act, but may also never do so: a Job of a JobSet that has failed is
	// not replaced, for example.
	longestCalm = 15 * time.Second
)

// Settle waits until nothing is left to be done by any controller, the scheduler, or a node. What a Job does when its
// back-off is over, after ten seconds or more, is not waited for.
func (s *Stage) Settle(ctx context.Context) error { return s.settle(ctx, s.view.moves) }

// settleBackoffs waits for that as well, where it is less than a minute.
func (s *Stage) settleBackoffs(ctx context.Context) error {
	return s.settle(ctx, func() (time.Duration, error) {
		if err := s.view.jobsBackOff(); err != nil {
			return 0, err
		}
		return s.view.moves()
	})
}

func (s *Stage) settle(ctx context.Context, moves func() (enough time.Duration, moves error)) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		again := calm
		need, restless := moves()
		if restless == nil {
			need = calm
		}
		if need > 0 {
			if again = need - s.view.quiet(); again <= 0 {
				if restless = s.schedulerMoves(ctx); restless == nil {
					return nil
				}
				again = pause
			}
		}
		timer.Reset(again)
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting until nothing changes any more: %w; %w", context.Cause(ctx), restless)
		case <-s.view.changed:
		case <-timer.C:
		}
	}
}

// moves describes what a controller still has to act on; nil if there is nothing of the kind. If only time shows whether a
// controller acts, enough is how long nothing must have changed to conclude that it does not.
func (v *view) moves() (enough time.Duration, moves error) {
	if err := v.unseen(); err != nil {
		return 0, err
	}
	for _, pod := range v.pods.all() {
		if err := podMoves(pod); err != nil {
			return 0, err
		}
	}
	for _, check := range []func() error{v.jobsMove, v.setsMove, v.guardsMove, v.claimsMove} {
		if err := check(); err != nil {
			return 0, err
		}
	}
	enough, moves = v.queuesMove()
	if moves == nil {
		enough, moves = v.nominationsMove()
	}
	if !v.othersAct() || moves != nil && enough == 0 {
		return enough, moves
	}
	if err := v.othersMove(); err != nil {
		return longestCalm, err
	}
	return longCalm, errors.New("controllers of other projects may still act")
}

// policyBinding is the kind of object with which an admission policy begins to hold.
const policyBinding = "ValidatingAdmissionPolicyBinding"

// hasPolicy reports whether the API server was given a policy since the stage was empty. It reads policies once a second,
// for deletions too, and nothing tells when it follows one, or no longer.
func (v *view) hasPolicy() bool {
	_, has := v.expected[policyBinding]
	return has
}

// empties describes what is still to go, as moves does; after that, only time shows that the API server has read that a
// policy is gone.
func (v *view) empties() (enough time.Duration, moves error) {
	if err := v.populated(); err != nil {
		return 0, err
	}
	if v.hasPolicy() {
		return longCalm, errors.New("the API server may still follow a policy")
	}
	return 0, nil
}

// othersAct reports whether there is anything for controllers of other projects, or a policy.
func (v *view) othersAct() bool {
	if v.hasPolicy() {
		return true
	}
	if slices.ContainsFunc(v.others, func(kind kept[*unstructured.Unstructured]) bool { return len(kind.all()) > 0 }) {
		return true
	}
	queued := slices.ContainsFunc(v.jobs.all(), inQueue) || slices.ContainsFunc(v.pods.all(), inQueue)
	return queued || len(v.workloads.all()) > 0
}

// inQueue reports whether an object is in a queue of Kueue's.
func inQueue[T metav1.Object](object T) bool { return object.GetLabels()[queueLabel] != "" }

// othersMove looks at the work of controllers of other projects: all objects in queues have Workloads, and the pods that
// these are to have.
func (v *view) othersMove() error {
	for _, kind := range v.others {
		for _, object := range kind.all() {
			controlled := slices.ContainsFunc(v.workloads.all(), func(w *unstructured.Unstructured) bool { return metav1.IsControlledBy(w, object) })
			if inQueue(object) && !controlled {
				return fmt.Errorf("%s %s/%s has no workload", object.GetKind(), object.GetNamespace(), object.GetName())
			}
		}
	}
	for _, object := range v.workloads.all() {
		w, err := decode[kueue.Workload](object)
		if err != nil {
			return err
		}
		if err := v.workloadMoves(w); err != nil {
			return err
		}
	}
	return nil
}

// workloadMoves looks for victims that are still there, and for pods that a workload should have, or no longer: KubeRay
// looks at a suspended cluster only two seconds after it has written its status.
func (v *view) workloadMoves(w *kueue.Workload) error {
	is := func(condition string) bool { return meta.IsStatusConditionTrue(w.Status.Conditions, condition) }
	have := v.podsOf(w)
	switch {
	case is(kueue.WorkloadFinished):
	case is(kueue.WorkloadEvicted) && (w.Status.Admission != nil || have > 0):
		return fmt.Errorf("workload %s/%s is evicted, and still has quota or some of its %d pods", w.Namespace, w.Name, have)
	case preempts(w):
		return fmt.Errorf("workload %s/%s waits for those that it preempts", w.Namespace, w.Name)
	case is(kueue.WorkloadAdmitted) && w.Status.Admission != nil && have < admittedPods(w):
		return fmt.Errorf("workload %s/%s is admitted with %d pods, and has %d", w.Namespace, w.Name, admittedPods(w), have)
	}
	return nil
}

// preempts reports whether Kueue decides about a workload again when its victims are gone, or should have done so.
func preempts(w *kueue.Workload) bool {
	return strings.Contains(unreserved(w), "Pending the preemption of")
}

// unreserved is why a workload has no quota; "" if it has, or if nothing was decided.
func unreserved(w *kueue.Workload) string {
	reserved := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved)
	if reserved == nil || reserved.Status != metav1.ConditionFalse {
		return ""
	}
	return reserved.Message
}

// podsOf is how many pods a workload has.
func (v *view) podsOf(w *kueue.Workload) int {
	have := 0
	for _, pod := range alive(v.pods.all()) {
		if pod.Namespace == w.Namespace && pod.Annotations[kueue.WorkloadAnnotation] == w.Name {
			have++
		}
	}
	return have
}

// admittedPods is the number of pods for which a workload holds quota.
func admittedPods(w *kueue.Workload) int {
	pods := int32(0)
	for _, set := range w.Status.Admission.PodSetAssignments {
		if set.Count != nil {
			pods += *set.Count
		}
	}
	return int(pods)
}

func podMoves(pod *corev1.Pod) error {
	is := func(what string) error { return fmt.Errorf("pod %s/%s %s", pod.Namespace, pod.Name, what) }
	switch {
	case ended(pod): // perhaps its Job has not counted it yet, which it puts off while it backs off
		return nil
	case pod.DeletionTimestamp != nil:
		return is("is being deleted")
	case pod.Status.Phase == corev1.PodRunning:
		return nil
	case pod.Spec.NodeName != "":
		return is("does not run yet")
	case !tried(pod):
		return is("is not decided about")
	}
	return nil
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// tried reports whether a pod without a node was found to have to wait, or belongs to another scheduler.
func tried(pod *corev1.Pod) bool {
	return pod.Spec.SchedulerName != corev1.DefaultSchedulerName ||
		slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse
		})
}

// alive are those of some pods that have not ended.
func alive(pods []*corev1.Pod) []*corev1.Pod {
	return slices.DeleteFunc(pods, func(pod *corev1.Pod) bool { return ended(pod) || pod.DeletionTimestamp != nil })
}

// failedCreate is the reason of a controller's event that it could not create a pod.
const failedCreate = "FailedCreate"

// refused reports whether pods could not be created for an object, which its controller has reported.
func (v *view) refused(uid types.UID) bool {
	return slices.ContainsFunc(v.events.all(), func(e *corev1.Event) bool {
		return e.InvolvedObject.UID == uid && e.Reason == failedCreate && !lags(e.Message)
	})
}

// lags reports whether it was a webhook of Kueue's that has not seen the pod's owner yet: a later attempt succeeds.
func lags(refusal string) bool {
	return strings.Contains(refusal, `"mpod.kb.io"`) && strings.HasSuffix(refusal, "not found")
}

func (v *view) jobsMove() error {
	for _, job := range v.jobs.all() {
		pods := owned(v.pods.all(), job.UID)
		failed := job.Status.Failed > 0 || slices.ContainsFunc(pods, ended) // it backs off before it makes another one
		have, want := len(alive(pods)), wantedPods(job)
		switch {
		case job.DeletionTimestamp != nil:
			return fmt.Errorf("the Job %s/%s is being deleted", job.Namespace, job.Name)
		case have == want && (failed || int(job.Status.Active) == have):
		case have < want && (failed || v.refused(job.UID)):
		default:
			return fmt.Errorf("the Job %s/%s has %d pods, knows of %d, and wants %d", job.Namespace, job.Name, have, job.Status.Active, want)
		}
	}
	return nil
}

// mostFailures is the number of failures after which a Job replaces the failed pods within a minute: it backs off for ten
// seconds after the first one, and twice as long after each further one.
const mostFailures = 3

// jobsBackOff is the error that a Job will replace failed pods, and soon.
func (v *view) jobsBackOff() error {
	for _, job := range v.jobs.all() {
		pods := owned(v.pods.all(), job.UID)
		have, want := len(alive(slices.Clone(pods))), wantedPods(job)
		failures := int(job.Status.Failed)
		for _, pod := range pods {
			counted := !slices.Contains(pod.Finalizers, batchv1.JobTrackingFinalizer)
			if pod.Status.Phase == corev1.PodFailed && !counted {
				failures++
			}
		}
		if have < want && failures <= mostFailures && !v.refused(job.UID) {
			return fmt.Errorf("the Job %s/%s has %d pods, and makes %d again when its back-off is over", job.Namespace, job.Name, have, want-have)
		}
	}
	return nil
}

// wantedPods is the number of pods of a Job that run at the same time.
func wantedPods(job *batchv1.Job) int {
	over := slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed || c.Type == batchv1.JobFailureTarget || c.Type == batchv1.JobSuccessCriteriaMet)
	})
	if over || job.Spec.Suspend != nil && *job.Spec.Suspend {
		return 0
	}
	want := int32(1)
	if job.Spec.Parallelism != nil {
		want = *job.Spec.Parallelism
	}
	if job.Spec.Completions != nil {
		want = min(want, *job.Spec.Completions-job.Status.Succeeded)
	}
	return int(want)
}

// setsMove looks at what keeps a number of pods.
func (v *view) setsMove() error {
	for _, d := range v.deployments.all() {
		sets := owned(v.replicaSets.all(), d.UID)
		none := len(sets) == 0 && !d.Spec.Paused && !v.refused(d.UID) // one that was created paused has none
		if d.Status.ObservedGeneration != d.Generation || none || d.DeletionTimestamp != nil {
			return fmt.Errorf("the Deployment %s/%s is not looked at", d.Namespace, d.Name)
		}
	}
	for _, r := range v.replicaSets.all() {
		have := len(alive(owned(v.pods.all(), r.UID)))
		complete := have == int(*r.Spec.Replicas) && int(r.Status.Replicas) == have
		if r.Status.ObservedGeneration != r.Generation || r.DeletionTimestamp != nil || !complete && !v.refused(r.UID) {
			return fmt.Errorf("the ReplicaSet %s/%s has %d pods of %d", r.Namespace, r.Name, have, *r.Spec.Replicas)
		}
	}
	for _, s := range v.statefulSets.all() {
		pods := alive(owned(v.pods.all(), s.UID))
		waits := slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodPending }) // those after it are not made
		complete := len(pods) == int(*s.Spec.Replicas) && int(s.Status.Replicas) == len(pods)
		if s.Status.ObservedGeneration != s.Generation || s.DeletionTimestamp != nil || !complete && !waits && !v.refused(s.UID) {
			return fmt.Errorf("the StatefulSet %s/%s has %d pods of %d", s.Namespace, s.Name, len(pods), *s.Spec.Replicas)
		}
	}
	for _, d := range v.daemonSets.all() {
		have := len(alive(owned(v.pods.all(), d.UID)))
		placed := d.Status.CurrentNumberScheduled == d.Status.DesiredNumberScheduled
		// A pod stays on a node that gets a taint, where it is no longer desired.
		complete := placed && have == int(d.Status.CurrentNumberScheduled+d.Status.NumberMisscheduled)
		if d.Status.ObservedGeneration != d.Generation || d.DeletionTimestamp != nil || !complete && !v.refused(d.UID) {
			return fmt.Errorf("the DaemonSet %s/%s has %d pods of %d", d.Namespace, d.Name, have, d.Status.DesiredNumberScheduled)
		}
	}
	return nil
}

// guardsMove looks at what keeps count of pods.
func (v *view) guardsMove() error {
	for _, b := range v.budgets.all() {
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err != nil {
			selector = labels.Nothing()
		}
		if v.overlaps(b, selector) { // their controller updates one budget of a pod only
			continue
		}
		healthy := int32(0)
		for _, pod := range v.pods.all() {
			ready := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
			})
			if pod.Namespace == b.Namespace && ready && pod.DeletionTimestamp == nil && selector.Matches(labels.Set(pod.Labels)) {
				healthy++
			}
		}
		// A percentage of pods that nothing owns means nothing.
		allowed := meta.FindStatusCondition(b.Status.Conditions, policyv1.DisruptionAllowedCondition)
		if allowed != nil && allowed.Reason == policyv1.SyncFailedReason {
			continue
		}
		if b.Status.ObservedGeneration != b.Generation || b.Status.CurrentHealthy != healthy {
			return fmt.Errorf("PodDisruptionBudget %s/%s knows of %d healthy pods, and there are %d", b.Namespace, b.Name, b.Status.CurrentHealthy, healthy)
		}
	}
	for _, q := range v.quotas.all() {
		if !equality.Semantic.DeepEqual(q.Spec.Hard, q.Status.Hard) {
			return fmt.Errorf("ResourceQuota %s/%s is not looked at", q.Namespace, q.Name)
		}
	}
	return nil
}

// overlaps reports whether another budget protects a pod of this one.
func (v *view) overlaps(b *policyv1.PodDisruptionBudget, selector labels.Selector) bool {
	return slices.ContainsFunc(v.budgets.all(), func(other *policyv1.PodDisruptionBudget) bool {
		theirs, err := metav1.LabelSelectorAsSelector(other.Spec.Selector)
		return err == nil && other.UID != b.UID && slices.ContainsFunc(v.pods.all(), func(pod *corev1.Pod) bool {
			set := labels.Set(pod.Labels)
			return pod.Namespace == b.Namespace && other.Namespace == b.Namespace && selector.Matches(set) && theirs.Matches(set)
		})
	})
}

// claimsMove looks at claims that wait for no pod, and for which there is a volume: their controller looks for one when
// they are made, and then every 15 seconds.
func (v *view) claimsMove() error {
	for _, claim := range v.claims.all() {
		name := claim.Spec.StorageClassName
		if claim.Status.Phase != corev1.ClaimPending || name == nil {
			continue
		}
		waits := slices.ContainsFunc(v.classes.all(), func(c *storagev1.StorageClass) bool {
			return c.Name == *name && c.VolumeBindingMode != nil && *c.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
		})
		found := slices.ContainsFunc(v.volumes.all(), func(pv *corev1.PersistentVolume) bool {
			return pv.Spec.StorageClassName == *name && pv.Spec.ClaimRef == nil && pv.Status.Phase == corev1.VolumeAvailable
		})
		if !waits && found {
			return fmt.Errorf("the claim %s/%s is not bound", claim.Namespace, claim.Name)
		}
	}
	return nil
}

// queuesMove looks at what waits for quota. A workload behind others may not be looked at before they are gone.
func (v *view) queuesMove() (enough time.Duration, moves error) {
	for _, object := range v.workloads.all() {
		w, err := decode[kueue.Workload](object)
		if err != nil {
			return 0, err
		}
		switch reserved := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved); {
		case w.DeletionTimestamp != nil:
			return 0, fmt.Errorf("workload %s/%s is being deleted", w.Namespace, w.Name)
		case reserved == nil || reserved.Status == metav1.ConditionFalse: // quota that it waits for may just have become free
			enough, moves = longCalm, fmt.Errorf("workload %s/%s is not decided about", w.Namespace, w.Name)
		}
	}
	return enough, moves
}

// nominationsMove looks at what waits for a node that is reserved for it. When its victims have gone, the scheduler binds its
// claims first, and asks for the result once a second.
func (v *view) nominationsMove() (enough time.Duration, moves error) {
	for _, pod := range v.pods.all() {
		if pod.Spec.NodeName == "" && pod.Status.NominatedNodeName != "" && !ended(pod) {
			return longCalm, fmt.Errorf("pod %s/%s may be bound to node %s", pod.Namespace, pod.Name, pod.Status.NominatedNodeName)
		}
	}
	return 0, nil
}

// schedulerMoves reports, from the scheduler's metrics, that a pod is in its active or backoff queue. Pods in the
// unschedulable queue may remain.
func (s *Stage) schedulerMoves(ctx context.Context) error {
	queues, err := s.schedulerQueues(ctx)
	if err != nil {
		return err
	}
	waiting := 0
	for _, pod := range s.view.pods.all() {
		if pod.Spec.NodeName == "" && !ended(pod) && pod.Spec.SchedulerName == corev1.DefaultSchedulerName {
			waiting++
		}
	}
	if queues["unschedulable"]+queues["gated"] != waiting || queues["active"]+queues["backoff"] > 0 {
		return fmt.Errorf("the scheduler has %v, and %d pods wait", queues, waiting)
	}
	return nil
}

var pendingLine = regexp.MustCompile(`(?m)^scheduler_pending_pods\{queue="(\w+)"\} (\d+)$`)

// schedulerQueues is how many pods are in each of the scheduler's queues.
func (s *Stage) schedulerQueues(ctx context.Context) (map[string]int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.metricsURL, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := s.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", s.metricsURL, response.Status)
	}
	queues := map[string]int{}
	for _, match := range pendingLine.FindAllSubmatch(text, -1) {
		if queues[string(match[1])], err = strconv.Atoi(string(match[2])); err != nil {
			return nil, err
		}
	}
	if len(queues) == 0 {
		return nil, fmt.Errorf("%s: the scheduler does not say how many pods are pending", s.metricsURL)
	}
	return queues, nil
}
