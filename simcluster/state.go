package simcluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/addon"
)

// What LogState prints at most.
const (
	mostEvents  = 60
	logTailSize = 8 << 10
)

// LogState logs what there is in a namespace, for a test that failed: pods and Workloads with their status, the newest
// events and, of a cluster with Kueue, the end of its log. "" stands for all namespaces.
func (c *Cluster) LogState(t testing.TB, namespace string) {
	t.Helper()
	// The test's own context may have ended.
	ctx, cancel := context.WithTimeout(context.Background(), patience.Short)
	defer cancel()
	for _, part := range []func(context.Context, string) (string, error){c.podLines, c.workloadLines, c.eventLines} {
		text, err := part(ctx, namespace)
		if err != nil {
			t.Logf("the state of the cluster is incomplete: %v", err)
		}
		t.Log(text)
	}
	if log, err := os.ReadFile(c.layout.Log(addon.Kueue)); err == nil {
		t.Logf("the end of Kueue's log:\n%s", log[max(0, len(log)-logTailSize):])
	}
}

func (c *Cluster) podLines(ctx context.Context, namespace string) (string, error) {
	client, err := c.Client()
	if err != nil {
		return "", err
	}
	pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", fmt.Errorf("pods: %w", err)
	}
	var text strings.Builder
	text.WriteString("pods:\n")
	for i := range pods.Items {
		p := &pods.Items[i]
		status, err := json.Marshal(p.Status)
		if err != nil {
			return text.String(), err
		}
		fmt.Fprintf(&text, "%s/%s on %q, deleted %v, gates %v: %s\n", p.Namespace, p.Name, p.Spec.NodeName, p.DeletionTimestamp, p.Spec.SchedulingGates, status)
	}
	return text.String(), nil
}

func (c *Cluster) workloadLines(ctx context.Context, namespace string) (string, error) {
	if _, err := os.Stat(c.layout.Log(addon.Kueue)); errors.Is(err, os.ErrNotExist) {
		return "Kueue does not run", nil
	}
	client, err := c.Kueue()
	if err != nil {
		return "", err
	}
	workloads, err := client.Workloads(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", fmt.Errorf("workloads: %w", err)
	}
	var text strings.Builder
	text.WriteString("Workloads:\n")
	for i := range workloads.Items {
		w := &workloads.Items[i]
		status, err := json.Marshal(w.Status)
		if err != nil {
			return text.String(), err
		}
		fmt.Fprintf(&text, "%s/%s in %s, of %v, deleted %v: %s\n", w.Namespace, w.Name, w.Spec.QueueName, w.OwnerReferences, w.DeletionTimestamp, status)
	}
	return text.String(), nil
}

func (c *Cluster) eventLines(ctx context.Context, namespace string) (string, error) {
	client, err := c.Client()
	if err != nil {
		return "", err
	}
	list, err := client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", fmt.Errorf("events: %w", err)
	}
	seen := func(e *corev1.Event) time.Time {
		return slices.MaxFunc([]time.Time{e.LastTimestamp.Time, e.EventTime.Time, e.CreationTimestamp.Time}, time.Time.Compare)
	}
	slices.SortStableFunc(list.Items, func(a, b corev1.Event) int {
		return cmp.Or(seen(&a).Compare(seen(&b)), cmp.Compare(a.Name, b.Name))
	})
	var text strings.Builder
	text.WriteString("the newest events:\n")
	for i := range list.Items[max(0, len(list.Items)-mostEvents):] {
		e := &list.Items[max(0, len(list.Items)-mostEvents)+i]
		fmt.Fprintf(&text, "%s %s %s %s/%s: %s\n", seen(e).UTC().Format(time.RFC3339), e.Reason, strings.ToLower(e.InvolvedObject.Kind),
			e.InvolvedObject.Namespace, e.InvolvedObject.Name, strings.TrimSpace(e.Message))
	}
	return text.String(), nil
}
