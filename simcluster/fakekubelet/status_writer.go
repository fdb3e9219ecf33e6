package fakekubelet

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// A request that takes this long will not be answered: the API server is stopped or
// stuck, and the pod's owner has other things to attend to.
const requestTimeout = 10 * time.Second

// A statusWriter writes one pod's status when it changes.
type statusWriter struct {
	client     kubernetes.Interface
	written    []byte
	conditions []corev1.PodCondition
	final      bool
}

// write computes the status and writes it unless it is what was written last.
func (w *statusWriter) write(ctx context.Context, l *lifecycle, addresses podAddresses, now time.Time) error {
	if w.final || (w.written == nil && l.over && finished(l.pod)) {
		return nil // written, by this agent or by one before it
	}
	previous := l.pod.Status.Conditions
	if w.conditions != nil {
		previous = mergeConditions(previous, w.conditions)
	}
	status := podStatus(l, addresses, previous, now)
	patch, err := statusPatch(l.pod.UID, status)
	if err != nil {
		return fmt.Errorf("status of pod %s/%s: %w", l.pod.Namespace, l.pod.Name, err)
	}
	if bytes.Equal(patch, w.written) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err = w.client.CoreV1().Pods(l.pod.Namespace).Patch(ctx, l.pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	// A pod that is gone, or a namesake with another UID, needs no status of this one.
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("patch: %w", err)
	}
	w.written, w.conditions, w.final = patch, status.Conditions, l.over
	return nil
}

func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// mergeConditions is present with those of written in place of older ones.
func mergeConditions(present, written []corev1.PodCondition) []corev1.PodCondition {
	merged := append([]corev1.PodCondition{}, written...)
	for _, c := range present {
		known := false
		for _, w := range written {
			known = known || w.Type == c.Type
		}
		if !known {
			merged = append(merged, c)
		}
	}
	return merged
}

// statusPatch is a strategic merge patch to status. The UID in it makes the API server
// refuse it for a namesake. Conditions are merged by type, so that the scheduler's and
// others' stay; addresses are replaced, because a pod has no other than these.
func statusPatch(uid types.UID, status corev1.PodStatus) ([]byte, error) {
	text, err := json.Marshal(status)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, err
	}
	for _, list := range []string{"podIPs", "hostIPs"} {
		if values, ok := fields[list].([]any); ok {
			fields[list] = append(values, map[string]any{"$patch": "replace"})
		}
	}
	return json.Marshal(map[string]any{"metadata": map[string]any{"uid": uid}, "status": fields})
}
