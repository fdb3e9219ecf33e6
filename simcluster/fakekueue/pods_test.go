package fakekueue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
)

func grace(seconds int64) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.TerminationGracePeriodSeconds = &seconds }
}

// facts/kueue.md §1 B to F: as seen on a real Kueue.
func TestTheQueueTakesAndGivesWorkersOneByOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 6 {
		created := w.pod(fmt.Sprintf("worker-%d", i), "low", "trap '' TERM; "+untilFile("/nowhere"), grace(12))
		gates := []string{}
		for _, gate := range created.Spec.SchedulingGates {
			gates = append(gates, gate.Name)
		}
		if !slices.Equal(gates, []string{kueue.AdmissionGate, kueue.TopologyGate}) || !slices.Contains(created.Finalizers, kueue.PodFinalizer) ||
			created.Labels[kueue.ManagedLabel] != "true" || created.Annotations[kueue.RoleHashAnnotation] == "" {
			t.Errorf("%s: gates %v, finalizers %v, labels %v, annotations %v", created.Name, gates, created.Finalizers, created.Labels, created.Annotations)
		}
		// Creation times have whole seconds; within one, UIDs decide.
		w.eventually("the next is younger by the API server's clock", func(context.Context) error {
			if now := time.Now(); now.Unix() <= created.CreationTimestamp.Unix() {
				return fmt.Errorf("it is %s", now)
			}
			return nil
		})
	}
	t.Log("B: four of six run, the others stay gated")
	reserved := map[string]time.Time{} // in whole seconds, which is all that Kueue knows
	for _, worker := range w.running("worker-", 4) {
		item, err := w.workloadOf(t.Context(), worker.Name)
		w.must(err)
		reserved[worker.Name] = meta.FindStatusCondition(item.Status.Conditions, kueue.WorkloadQuotaReserved).LastTransitionTime.Time
	}

	t.Log("C, F: an urgent pod takes the place of exactly one, which still runs out its grace period")
	line, cross := finishLine(t)
	w.pod("urgent", "high", untilFile(line))
	var victim corev1.Pod
	w.eventually("urgent runs while its victim still does", func(ctx context.Context) error {
		urgent, err := w.core.CoreV1().Pods(w.namespace).Get(ctx, "urgent", metav1.GetOptions{})
		if err != nil {
			return err
		}
		list, err := w.core.CoreV1().Pods(w.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		victims := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp == nil })
		if urgent.Status.Phase != corev1.PodRunning || len(victims) != 1 || victims[0].Status.Phase != corev1.PodRunning {
			return fmt.Errorf("urgent is %s, victims %d", urgent.Status.Phase, len(victims))
		}
		victim = victims[0]
		return nil
	})
	if slices.Contains(victim.Finalizers, kueue.PodFinalizer) {
		t.Errorf("finalizers of the victim: %v", victim.Finalizers)
	}
	i := slices.IndexFunc(victim.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == "TerminationTarget" })
	if i < 0 || victim.Status.Conditions[i].Reason != "WorkloadEvictedDueToPreempted" {
		t.Errorf("conditions of the victim: %+v", victim.Status.Conditions)
	}
	latest := time.Time{}
	for _, at := range reserved {
		if at.After(latest) {
			latest = at
		}
	}
	if at, ran := reserved[victim.Name]; !ran || !at.Equal(latest) {
		t.Errorf("the victim is %s; want one that was given quota last: %v", victim.Name, reserved)
	}

	t.Log("D: its name is taken until it is gone; a new name is accepted at once")
	_, err := w.core.CoreV1().Pods(w.namespace).Create(t.Context(), w.podObject(victim.Name, "low", forever), metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		t.Errorf("creating %s again: %v", victim.Name, err)
	}
	w.pod("worker-6", "low", forever, grace(1))
	w.becomes("worker-6", "Pending")
	w.must(w.core.CoreV1().Pods(w.namespace).Delete(t.Context(), victim.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}))

	t.Log("E: when the urgent pod is done, the oldest pending worker runs, not the newest")
	cross()
	w.becomes("urgent", "Finished")
	w.becomes("worker-4", "Admitted")
	w.becomes("worker-6", "Pending")
	w.eventually("urgent is let go", func(ctx context.Context) error {
		urgent, err := w.core.CoreV1().Pods(w.namespace).Get(ctx, "urgent", metav1.GetOptions{})
		if err == nil && len(urgent.Finalizers) > 0 {
			err = fmt.Errorf("finalizers %v", urgent.Finalizers)
		}
		return err
	})
	w.eventually("the victim's workload went with it", func(ctx context.Context) error {
		if item, err := w.workloadOf(ctx, victim.Name); err == nil {
			return fmt.Errorf("there is %s", item.Name)
		}
		return nil
	})
	if err := deleteAllNow(t.Context(), w); err != nil {
		t.Error(err)
	}
}

// deleteAllNow ends pods that do not listen.
func deleteAllNow(ctx context.Context, w *world) error {
	list, err := w.core.CoreV1().Pods(w.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var problems []error
	for _, pod := range list.Items {
		err := w.core.CoreV1().Pods(w.namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
		if !apierrors.IsNotFound(err) {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

func TestPodsOfTheSystemAreNotQueued(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pod := w.podObject("system", "", forever)
	created, err := w.core.CoreV1().Pods("kube-system").Create(t.Context(), pod, metav1.CreateOptions{})
	w.must(err)
	defer func() {
		w.must(w.core.CoreV1().Pods("kube-system").Delete(context.WithoutCancel(t.Context()), "system", metav1.DeleteOptions{}))
	}()
	if len(created.Spec.SchedulingGates) > 0 || created.Labels[kueue.ManagedLabel] != "" {
		t.Errorf("gates %v, labels %v", created.Spec.SchedulingGates, created.Labels)
	}
}
