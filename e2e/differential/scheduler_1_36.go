//go:build kubernetes1.36

package differential

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// SchedulerVersion is the minor version of the kube-scheduler that is compiled in.
const SchedulerVersion = "1.36"

func newInformers(client kubernetes.Interface) informers.SharedInformerFactory {
	return scheduler.NewInformerFactory(client, 0)
}

func (p *process) queued(pod *corev1.Pod) bool {
	_, queued := p.scheduler.SchedulingQueue.GetPod(pod.Name, pod.Namespace)
	return queued
}

// pop takes the next pod from the scheduler's queue; nil once that is closed.
func (p *process) pop(logger klog.Logger) (*framework.QueuedPodInfo, error) {
	return p.scheduler.SchedulingQueue.Pop(logger)
}

// popOne takes one pod from the queue.
func (p *process) popOne(ctx context.Context, pod *corev1.Pod) (*framework.QueuedPodInfo, error) {
	return p.scheduler.SchedulingQueue.PopSpecificPod(klog.FromContext(ctx), pod), nil
}

// takeFrom has the scheduler's next cycle take its pod from next.
func (p *process) takeFrom(next func(klog.Logger) (*framework.QueuedPodInfo, error)) {
	p.scheduler.NextPod = next
}
