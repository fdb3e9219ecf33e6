package scenario

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

// loseNode stops a node, deletes its Node object and ends its pods, as a file means a fault. The pods get the status that
// the garbage collection of pods gives them, which would run only 40 to 80 s later.
func (p *replayRun) loseNode(ctx context.Context, name string) error {
	node := p.cluster.Nodes[name]
	p.log.Add(eventlog.Event{Fault: &eventlog.Fault{Kind: eventlog.NodeStopped, Target: node}})
	if err := p.cluster.Faults.StopNode(ctx, node); err != nil {
		return fmt.Errorf("stop node %s: %w", node, err)
	}
	p.log.Add(eventlog.Event{Fault: &eventlog.Fault{Kind: eventlog.NodeDeleted, Target: node}})
	if err := p.clients.kubernetes.CoreV1().Nodes().Delete(ctx, node, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete node %s: %w", node, err)
	}
	pods := p.clients.kubernetes.CoreV1().Pods(p.cluster.Namespace)
	all, err := pods.List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		return fmt.Errorf("list the pods of node %s: %w", node, err)
	}
	for _, pod := range all.Items {
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		pod.Status.Phase = corev1.PodFailed
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByPodGC",
			Message: "PodGC: node no longer exists", LastTransitionTime: metav1.NewTime(time.Now()),
		})
		if _, err := pods.UpdateStatus(ctx, &pod, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("end pod %s: %w", pod.Name, err)
		}
		if err := pods.Delete(ctx, pod.Name, *metav1.NewDeleteOptions(0)); err != nil {
			return fmt.Errorf("delete pod %s: %w", pod.Name, err)
		}
	}
	return nil
}

func (p *replayRun) startNode(ctx context.Context, name string) error {
	node := p.cluster.Nodes[name]
	p.log.Add(eventlog.Event{Fault: &eventlog.Fault{Kind: eventlog.NodeStarted, Target: node}})
	if err := p.cluster.Faults.StartNode(ctx, node); err != nil {
		return fmt.Errorf("start node %s: %w", node, err)
	}
	return nil
}
