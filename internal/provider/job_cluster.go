package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
)

// jobCluster acts on the objects of one job: a batch/v1 Job that owns all others, and its pods.
type jobCluster struct {
	jobKind
	client  *cluster.Client
	subject subject
}

// jobKind holds what differs between kinds of jobs when they are deleted or explained.
type jobKind struct {
	noun    string // "Training job", to begin a sentence
	word    string // "job", to go on with
	label   string // key of the label with the job's name that every pod has
	account string // why the job gets a ServiceAccount of its own, in a sentence
	lossOf  func(job string, part trainingjob.Object) trainingjob.Loss
	// reserved reports whether a label is not the user's, and fields are the fields of the Job that attributes set.
	reserved func(label string) bool
	fields   []string
}

// podsOf selects the pods of all jobs of that name; isPodOf identifies the pods of one of them.
func (k jobKind) podsOf(ref trainingjob.JobRef) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: k.label + "=" + ref.Name}
}

// pods are the pods of this job only: the master's, by the label of the Job controller, and the workers', by the
// trainer's label.
func (c *jobCluster) pods(ctx context.Context, ref trainingjob.JobRef) ([]corev1.Pod, error) {
	list, err := c.client.Kubernetes().CoreV1().Pods(ref.Namespace).List(ctx, c.podsOf(ref))
	if err != nil {
		return nil, c.client.Wrap("list", cluster.Ref{Kind: "Pod", Namespace: ref.Namespace}, err)
	}
	var pods []corev1.Pod
	for i := range list.Items {
		if isPodOf(&list.Items[i], ref) {
			pods = append(pods, list.Items[i])
		}
	}
	return pods, nil
}

func isPodOf(pod *corev1.Pod, ref trainingjob.JobRef) bool {
	uid := string(ref.UID)
	return pod.Labels[trainingjob.LabelJobUID] == uid || pod.Labels[batchv1.ControllerUidLabel] == uid
}

// theJob is a Job with nothing but its name: enough to patch it.
func theJob(ref trainingjob.JobRef) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: ref.Name, Namespace: ref.Namespace}}
}

// patchParts changes the metadata of a job's objects as far as they are there.
func (c *jobCluster) patchParts(ctx context.Context, parts []trainingjob.Object, labels, annotations map[string]any) diag.Diagnostics {
	var diags diag.Diagnostics
	if len(labels)+len(annotations) == 0 {
		return diags
	}
	merge := map[string]any{"metadata": map[string]any{"labels": labels, "annotations": annotations}}
	for _, part := range parts {
		if err := c.part(part).patch(ctx, merge); err != nil && !apierrors.IsNotFound(err) {
			c.subject.explain(&diags, err)
			return diags
		}
	}
	return diags
}

// mergeOf is the JSON merge patch of a string map: null takes an entry away.
func mergeOf(before, after map[string]string) map[string]any {
	merge := map[string]any{}
	for key := range before {
		if _, stays := after[key]; !stays {
			merge[key] = nil
		}
	}
	for key, value := range after {
		if old, had := before[key]; !had || old != value {
			merge[key] = value
		}
	}
	return merge
}
