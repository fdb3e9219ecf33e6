package onkind

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/e2e-framework/klient"
	"sigs.k8s.io/e2e-framework/klient/k8s"
)

const detachLimit = 30 * time.Second

// Properties of a GKE node with four T4s: the resource that its device plugin reports, and the node pool's label and
// taint.
const (
	gpuResource  = corev1.ResourceName("nvidia.com/gpu")
	gpuCount     = "4"
	gpuLabel     = "cloud.google.com/gke-accelerator"
	gpuLabelT4   = "nvidia-tesla-t4"
	gpuTaintText = "present"
)

// attachGPUs turns a node into one with four T4s, for the scheduler. Kubernetes documents this for resources that no
// device plugin reports ("Advertise Extended Resources for a Node"); the kubelet keeps the value.
func attachGPUs(ctx context.Context, client klient.Client, node string) error {
	taint := func(taints []corev1.Taint) []corev1.Taint {
		return append(taints, corev1.Taint{Key: string(gpuResource), Value: gpuTaintText, Effect: corev1.TaintEffectNoSchedule})
	}
	count := resource.MustParse(gpuCount)
	if err := patchNode(ctx, client, node, map[string]any{gpuLabel: gpuLabelT4}, taint, &count); err != nil {
		return fmt.Errorf("attach GPUs to node %s: %w", node, err)
	}
	return nil
}

// detachGPUs undoes attachGPUs.
func detachGPUs(ctx context.Context, client klient.Client, node string) error {
	untaint := func(taints []corev1.Taint) []corev1.Taint {
		return slices.DeleteFunc(taints, func(t corev1.Taint) bool { return t.Key == string(gpuResource) })
	}
	if err := patchNode(ctx, client, node, map[string]any{gpuLabel: nil}, untaint, nil); err != nil {
		return fmt.Errorf("detach GPUs from node %s: %w", node, err)
	}
	return nil
}

// patchNode changes a node's labels (nil removes one), taints and number of GPUs (nil for none).
func patchNode(ctx context.Context, client klient.Client, name string, labels map[string]any, taints func([]corev1.Taint) []corev1.Taint,
	gpus *resource.Quantity,
) error {
	r := client.Resources()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := r.Get(ctx, name, "", node); err != nil {
		return err
	}
	spec, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"labels": labels, "resourceVersion": node.ResourceVersion},
		"spec":     map[string]any{"taints": taints(node.Spec.Taints)},
	})
	if err != nil {
		return err
	}
	if err := r.Patch(ctx, node, k8s.Patch{PatchType: types.MergePatchType, Data: spec}); err != nil {
		return err
	}
	resources := map[corev1.ResourceName]*resource.Quantity{gpuResource: gpus}
	status, err := json.Marshal(map[string]any{"status": map[string]any{"capacity": resources, "allocatable": resources}})
	if err != nil {
		return err
	}
	return r.PatchStatus(ctx, node, k8s.Patch{PatchType: types.MergePatchType, Data: status})
}
