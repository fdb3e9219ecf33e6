package fakekueue_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
)

// member makes a pod, or a pod template, one of a group of total pods.
func member(labels, annotations *map[string]string, group string, total int) {
	if *labels == nil {
		*labels = map[string]string{}
	}
	if *annotations == nil {
		*annotations = map[string]string{}
	}
	(*labels)[kueue.PodGroupNameLabel] = group
	(*annotations)[kueue.PodGroupTotalCountAnnotation] = fmt.Sprint(total)
}

// inTeam makes a pod one of the three of the group "team".
func inTeam(pod *corev1.Pod) { member(&pod.Labels, &pod.Annotations, "team", 3) }

func TestAGroupIsAdmittedWhenAllItsPodsAreThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	line, cross := finishLine(t)
	w.pod("a", "low", untilFile(line), inTeam)
	w.pod("b", "low", untilFile(line), inTeam)
	w.eventually("users read what is missing", func(ctx context.Context) error {
		return w.event(ctx, "a", "ErrWorkloadCompose", "'team' group has fewer runnable pods than expected")
	})
	if item, err := w.workloadOf(t.Context(), "team"); err == nil {
		t.Fatalf("an incomplete group has Workload %s", item.Name)
	}
	w.pod("c", "low", untilFile(line), inTeam, func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resourceOf("500m")
	})
	item := w.becomes("team", "Admitted")
	if len(item.Spec.PodSets) != 2 || item.Spec.PodSets[0].Count+item.Spec.PodSets[1].Count != 3 || len(item.OwnerReferences) != 3 || item.Annotations[kueue.IsGroupWorkloadAnnotation] != "true" {
		t.Errorf("pod sets %d, owners %d, annotations %v", len(item.Spec.PodSets), len(item.OwnerReferences), item.Annotations)
	}
	running := w.running("", 3)
	for _, pod := range running {
		if pod.Labels[kueue.PodSetLabel] != pod.Annotations[kueue.RoleHashAnnotation] {
			t.Errorf("pod %s: labels %v, annotations %v", pod.Name, pod.Labels, pod.Annotations)
		}
	}

	t.Log("a pod too many is removed")
	w.pod("d", "low", forever, inTeam)
	w.eventually("it is gone, and users read why", func(ctx context.Context) error {
		if _, err := w.core.CoreV1().Pods(w.namespace).Get(ctx, "d", metav1.GetOptions{}); err == nil {
			return fmt.Errorf("it is there")
		}
		return w.event(ctx, "d", "ExcessPodDeleted", "Excess pod deleted")
	})

	t.Log("one that failed is replaced, and runs at once on the group's quota")
	w.must(w.core.CoreV1().Pods(w.namespace).Delete(t.Context(), "b", metav1.DeleteOptions{}))
	w.eventually("the group says that a pod is missing", func(ctx context.Context) error {
		item, err := w.workloadOf(ctx, "team")
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(item.Status.Conditions, func(c metav1.Condition) bool {
			return c.Type == kueue.WorkloadWaitingForReplacementPods && c.Status == metav1.ConditionTrue
		}); i < 0 {
			return fmt.Errorf("conditions %+v", item.Status.Conditions)
		}
		return nil
	})
	w.pod("b2", "low", untilFile(line), inTeam)
	w.running("b2", 1)

	cross()
	finished := w.becomes("team", "Finished")
	w.condition(finished, kueue.WorkloadFinished, metav1.ConditionTrue, "Succeeded", "Pods succeeded: 3/3.")
	w.eventually("the pods are let go", func(ctx context.Context) error {
		list, err := w.core.CoreV1().Pods(w.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, pod := range list.Items {
			if len(pod.Finalizers) > 0 {
				return fmt.Errorf("%s has finalizers %v", pod.Name, pod.Finalizers)
			}
		}
		return nil
	})
}

// facts/kueue.md, "An elastic job under a queue": a master and minimum workers in two Jobs that are one group, and
// bursts.
func TestAnElasticJobUnderAQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.class("mid", 100)
	w.changeQueue("cq", w.quota("5"))
	groupJob := func(name string) *batchv1.Job {
		return w.job(name, "", 1, "trap 'exit 143' TERM; while :; do sleep 0.1; done", func(job *batchv1.Job) {
			job.Labels = map[string]string{"app": "elastic"} // of its own: a Job without labels gets its template's
			job.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion)
			job.Spec.PodReplacementPolicy = ptr.To(batchv1.Failed)
			job.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
				Action:          batchv1.PodFailurePolicyActionIgnore,
				OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: "TerminationTarget", Status: corev1.ConditionTrue}},
			}}}
			job.Spec.Template.Labels = w.queueLabels("mid")
			member(&job.Spec.Template.Labels, &job.Spec.Template.Annotations, "j1-min-abc", 2)
		})
	}
	master := groupJob("j1")
	w.eventually("the master's pod is gated alone", func(ctx context.Context) error {
		list, err := w.core.CoreV1().Pods(w.namespace).List(ctx, metav1.ListOptions{})
		if err == nil && (len(list.Items) != 1 || len(list.Items[0].Spec.SchedulingGates) == 0) {
			err = fmt.Errorf("%d pods", len(list.Items))
		}
		return err
	})
	groupJob("j1-min")
	first := w.becomes("j1-min-abc", "Admitted")
	w.running("j1-0", 1)
	w.running("j1-min-0", 1)
	burst := func(name string) {
		w.pod(name, "low", forever, func(pod *corev1.Pod) {
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: master.Name, UID: master.UID}}
		})
	}
	for _, name := range []string{"burst-1", "burst-2", "burst-3"} {
		burst(name)
	}
	w.running("burst-", 3)

	t.Log("a high Job of 2 CPU takes two bursts, and nothing else")
	line, cross := finishLine(t)
	w.job("high", "high", 2, untilFile(line))
	w.becomes("high", "Admitted")
	w.running("burst-", 1)
	if now := w.becomes("j1-min-abc", "Admitted"); now.Status.SchedulingStats != nil {
		t.Errorf("the group was evicted: %+v", now.Status.SchedulingStats)
	}
	cross()
	w.becomes("high", "Finished")
	burst("burst-4")
	burst("burst-5")
	w.running("burst-", 3)

	t.Log("a high Job of 5 CPU takes everything; then the same Workload is admitted again, by itself")
	line, cross = finishLine(t)
	w.job("highest", "high", 5, untilFile(line))
	w.becomes("highest", "Admitted")
	w.running("highest-", 5)
	w.eventually("the Jobs' pods are there again, gated", func(ctx context.Context) error {
		list, err := w.core.CoreV1().Pods(w.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		gated := 0
		for _, pod := range list.Items {
			if strings.HasPrefix(pod.Name, "j1") && len(pod.Spec.SchedulingGates) > 0 && pod.DeletionTimestamp == nil {
				gated++
			}
		}
		if gated != 2 {
			return fmt.Errorf("%d are gated", gated)
		}
		return nil
	})
	evicted := w.becomes("j1-min-abc", "Pending")
	w.condition(evicted, kueue.WorkloadEvicted, metav1.ConditionTrue, "Preempted", "")
	w.condition(evicted, kueue.WorkloadRequeued, metav1.ConditionTrue, "Preempted", "")
	cross()
	again := w.becomes("j1-min-abc", "Admitted")
	if again.UID != first.UID {
		t.Error("it is another Workload")
	}
	w.running("j1-0", 1)
	w.running("j1-min-0", 1)
}
