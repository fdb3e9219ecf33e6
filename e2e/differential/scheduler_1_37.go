//go:build !kubernetes1.36

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
const SchedulerVersion = "1.37"

func newInformers(client kubernetes.Interface) informers.SharedInformerFactory {
	return scheduler.NewInformerFactory(client, 0, nil)
}

func (p *process) queued(pod *corev1.Pod) bool {
	_, queued := p.scheduler.SchedulingQueue.GetPod(pod.Name, pod.Namespace, pod.Spec.SchedulingGroup)
	return queued
}

// pop takes the next pod from the scheduler's queue; nil once that is closed. No snapshot has pod groups.
func (p *process) pop(logger klog.Logger) (*framework.QueuedPodInfo, error) {
	entity, err := p.scheduler.SchedulingQueue.Pop(logger)
	info, _ := entity.(*framework.QueuedPodInfo)
	return info, err
}

// popOne takes one pod from the queue. Pods that are taken before it go back, for a nomination counts only while its pod
// is in the queue.
func (p *process) popOne(ctx context.Context, pod *corev1.Pod) (*framework.QueuedPodInfo, error) {
	var others []*corev1.Pod
	for {
		info, err := p.pop(klog.FromContext(ctx))
		if err != nil || info == nil {
			return nil, err
		}
		if nameOf(info.Pod) != nameOf(pod) {
			others = append(others, info.Pod)
			continue
		}
		for _, other := range others {
			p.scheduler.SchedulingQueue.Done(other.UID)
			p.scheduler.SchedulingQueue.Add(ctx, other)
		}
		return info, nil
	}
}

// takeFrom has the scheduler's next cycle take its pod from next.
func (p *process) takeFrom(next func(klog.Logger) (*framework.QueuedPodInfo, error)) {
	p.scheduler.NextEntity = func(logger klog.Logger) (framework.QueuedEntityInfo, error) {
		info, err := next(logger)
		if info == nil {
			return nil, err
		}
		return info, err
	}
}
