package fakekueue_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/simcluster/controlplane"
)

func resourceOf(text string) resource.Quantity { return resource.MustParse(text) }

// The controller is killed with work under way; everything is in the API server.
func TestTheControllerIsKilledAndGoesOn(t *testing.T) {
	w := newWorld(t)
	w.job("running", "low", 3, forever)
	w.becomes("running", "Admitted")
	w.job("waiting", "low", 3, forever)
	w.becomes("waiting", "Pending")
	pods := w.running("running-", 3)

	w.must(cluster.KillComponent(t.Context(), controlplane.QueueController))
	// While it is away, nothing can be queued; as with Kueue, the API server says so.
	w.must(cluster.WaitReady(t.Context()))
	w.job("third", "low", 1, forever)
	w.becomes("third", "Admitted")
	if item := w.becomes("waiting", "Pending"); item.Status.Admission != nil {
		t.Errorf("admitted twice: %+v", item.Status.Admission)
	}
	for _, pod := range pods {
		now, err := w.core.CoreV1().Pods(w.namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
		if err != nil || now.UID != pod.UID || now.Status.Phase != corev1.PodRunning {
			t.Errorf("pod %s after the restart: %v, %v", pod.Name, now.Status.Phase, err)
		}
	}

	t.Log("killed in the middle of an eviction")
	w.job("high", "high", 4, forever)
	w.must(cluster.KillComponent(t.Context(), controlplane.QueueController))
	w.becomes("high", "Admitted")
	w.running("high-", 4)
	w.eventually("quota is given to nobody else", func(ctx context.Context) error {
		list, err := w.kueue.Workloads(w.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		held := resource.Quantity{}
		for _, item := range list.Items {
			if item.Status.Admission != nil && state(&item) == "Admitted" {
				held.Add(*item.Status.Admission.PodSetAssignments[0].ResourceUsage.Cpu())
			}
		}
		if held.Cmp(resource.MustParse("4")) != 0 {
			return fmt.Errorf("%s CPU are given away", held.String())
		}
		return nil
	})
	if stats := w.becomes("running", "Pending").Status.SchedulingStats; stats == nil || len(stats.Evictions) != 1 || stats.Evictions[0].Count != 1 {
		t.Errorf("evictions of running: %+v", stats)
	}
}
