package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainingjob"
)

// jobCluster acts on the objects of one job: a batch/v1 Job that owns all others, and its pods.
type jobCluster struct {
	jobKind
	client  *cluster.Client
	subject subject
}

// jobKind is what tells kinds of jobs apart for who deletes and explains them.
type jobKind struct {
	noun    string // "Training job", to begin a sentence
	label   string // key of the label with the job's name that every pod has
	account string // why the job gets a ServiceAccount of its own, in a sentence
}

// podsOf selects the pods of all jobs of that name; isPodOf tells whose they are.
func (k jobKind) podsOf(ref trainingjob.JobRef) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: k.label + "=" + ref.Name}
}

// deleteJob deletes the Job in the foreground and waits until none of its pods is left.
func (c *jobCluster) deleteJob(ctx context.Context, ref trainingjob.JobRef) error {
	kube := c.client.Kubernetes()
	err := cluster.Delete(ctx, c.client, kube.BatchV1().Jobs(ref.Namespace), ref.Name, ref.UID, metav1.DeletePropagationForeground)
	if err != nil {
		return err
	}
	return cluster.WaitFor(ctx, c.client, kube.CoreV1().Pods(ref.Namespace), c.podsOf(ref), func(pods []*corev1.Pod) (bool, error) {
		for _, pod := range pods {
			if isPodOf(pod, ref) {
				return false, nil
			}
		}
		return true, nil
	})
}

// lastLines are the last of what a container printed, or why they cannot be read.
func (c *jobCluster) lastLines(ctx context.Context, pod *corev1.Pod, container string) []string {
	text, err := c.client.Kubernetes().CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
		Container: container, TailLines: new(int64(lastLogLines)),
	}).DoRaw(ctx)
	if err != nil {
		return []string{fmt.Sprintf("(the log of pod %s cannot be read: %v)", pod.Name, err)}
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// whyEnded says why a wait has ended before its time, as the end of a sentence.
func whyEnded(err error) string {
	switch {
	case errors.Is(err, context.Canceled):
		return "it was interrupted"
	case errors.Is(err, errTimeIsUp), errors.Is(err, context.DeadlineExceeded):
		return "the time for it was up"
	}
	_, detail := cluster.Explain(err)
	return strings.TrimSuffix(detail, ".")
}
