package fakekueue

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/utils/ptr"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
)

// patcher is a client of objects of one kind.
type patcher[T object] interface {
	Patch(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions, subresources ...string) (T, error)
}

// wroteTo notes what the API server answered to a write of an object in the object's store.
func wroteTo[T object](s *store[T], name types.NamespacedName, written T, err error) (T, error) {
	switch {
	case err == nil:
		s.wrote(written)
	case apierrors.IsNotFound(err):
		s.forget(name)
	}
	return written, err
}

// patch sends what distinguishes after from before, and nothing where nothing does. Only that very object is meant,
// and, with exactly, only that version of it.
func patch[T object](ctx context.Context, s *store[T], client patcher[T], before, after T, exactly bool, subresources ...string) (T, error) {
	from, err := json.Marshal(before)
	if err != nil {
		return before, err
	}
	to, err := json.Marshal(after)
	if err != nil {
		return before, err
	}
	diff, err := strategicpatch.CreateTwoWayMergePatch(from, to, after)
	if err != nil || string(diff) == "{}" {
		return before, err
	}
	var body map[string]any
	if err := json.Unmarshal(diff, &body); err != nil {
		return before, err
	}
	metadata, ok := body["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		body["metadata"] = metadata
	}
	metadata["uid"] = before.GetUID()
	if exactly {
		metadata["resourceVersion"] = before.GetResourceVersion()
	}
	if diff, err = json.Marshal(body); err != nil {
		return before, err
	}
	written, err := client.Patch(ctx, before.GetName(), types.StrategicMergePatchType, diff, metav1.PatchOptions{FieldManager: fieldManager}, subresources...)
	return wroteTo(s, nameOf(before), written, err)
}

func (c *controller) patchJob(ctx context.Context, before, after *batchv1.Job, subresources ...string) (*batchv1.Job, error) {
	return patch(ctx, c.jobs, c.core.BatchV1().Jobs(before.Namespace), before, after, false, subresources...)
}

func (c *controller) patchPod(ctx context.Context, before, after *corev1.Pod, subresources ...string) (*corev1.Pod, error) {
	return patch(ctx, c.pods, c.core.CoreV1().Pods(before.Namespace), before, after, false, subresources...)
}

// applyStatus makes status the status of a Kueue object, as far as it is ours: fields that we set before and that are
// not in it go. It is refused where somebody else wrote since before was read.
func applyStatus[T object](ctx context.Context, s *store[T], client patcher[T], before T, kind string, status any) (T, error) {
	body, err := json.Marshal(map[string]any{
		"apiVersion": kueue.SchemeGroupVersion.String(),
		"kind":       kind,
		"metadata": map[string]any{
			"name": before.GetName(), "namespace": before.GetNamespace(),
			"uid": before.GetUID(), "resourceVersion": before.GetResourceVersion(),
		},
		"status": status,
	})
	if err != nil {
		return before, err
	}
	written, err := client.Patch(ctx, before.GetName(), types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: fieldManager, Force: ptr.To(true)}, "status")
	return wroteTo(s, nameOf(before), written, err)
}

// setStatus changes a workload's status: change is given a copy and reports whether there is anything to write.
func (c *controller) setStatus(ctx context.Context, before *kueue.Workload, change func(*kueue.Workload) bool) (*kueue.Workload, error) {
	after := before.DeepCopy()
	if !change(after) {
		return before, nil
	}
	written, err := applyStatus(ctx, c.workloads, c.kueue.Workloads(before.Namespace), before, "Workload", after.Status)
	if err != nil {
		return before, fmt.Errorf("status of Workload %s/%s: %w", before.Namespace, before.Name, err)
	}
	return written, nil
}

// update changes what is not the status of a workload.
func (c *controller) update(ctx context.Context, before *kueue.Workload, change func(*kueue.Workload) bool) (*kueue.Workload, error) {
	after := before.DeepCopy()
	if !change(after) {
		return before, nil
	}
	written, err := c.kueue.Workloads(before.Namespace).Update(ctx, after, metav1.UpdateOptions{FieldManager: fieldManager})
	if written, err = wroteTo(c.workloads, nameOf(before), written, err); err != nil {
		return before, fmt.Errorf("changing Workload %s/%s: %w", before.Namespace, before.Name, err)
	}
	return written, nil
}

// setFinalizers replaces the finalizers of that version of an object.
func setFinalizers[T object](ctx context.Context, s *store[T], client patcher[T], o T, finalizers []string) (T, error) {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": finalizers, "uid": o.GetUID(), "resourceVersion": o.GetResourceVersion()}})
	if err != nil {
		return o, err
	}
	written, err := client.Patch(ctx, o.GetName(), types.MergePatchType, body, metav1.PatchOptions{FieldManager: fieldManager})
	return wroteTo(s, nameOf(o), written, err)
}

// without is a list without a value; the list itself stays as it is.
func without(list []string, value string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == value })
}

// letGo removes our finalizer from a workload.
func (c *controller) letGo(ctx context.Context, w *kueue.Workload) (*kueue.Workload, error) {
	return c.update(ctx, w, func(w *kueue.Workload) bool {
		if !slices.Contains(w.Finalizers, kueue.ResourceInUseFinalizer) {
			return false
		}
		w.Finalizers = without(w.Finalizers, kueue.ResourceInUseFinalizer)
		return true
	})
}

// deleteWorkload removes a workload that stands for nothing.
func (c *controller) deleteWorkload(ctx context.Context, w *kueue.Workload) error {
	w, err := c.letGo(ctx, w)
	if ignoreNotFound(err) != nil {
		return err
	}
	if w.DeletionTimestamp != nil {
		return nil
	}
	err = c.kueue.Workloads(w.Namespace).Delete(ctx, w.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(w.UID))})
	c.workloads.forget(nameOf(w))
	return ignoreNotFound(err)
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
