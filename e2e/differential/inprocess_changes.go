package differential

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// try has the scheduler decide on a waiting pod now, even if it backs off.
func (p *process) try(ctx context.Context, pod *corev1.Pod) error {
	return p.cycle(ctx, func(logger klog.Logger) (*framework.QueuedPodInfo, error) {
		p.scheduler.SchedulingQueue.Activate(logger, map[string]*corev1.Pod{pod.Name: pod})
		return p.popOne(klog.NewContext(ctx, logger), pod)
	})
}

// add creates a pod, and waits until the scheduler knows it.
func (p *process) add(ctx context.Context, pod *corev1.Pod) error {
	p.mutex.Lock()
	pod.ResourceVersion = p.nextVersion()
	p.pods = append(p.pods, pod)
	err := p.client.Tracker().Add(pod.DeepCopy())
	p.mutex.Unlock()
	if err != nil {
		return fmt.Errorf("adding pod %s: %w", nameOf(pod), err)
	}
	return p.await(ctx, func(context.Context) bool {
		if pod.Spec.NodeName == "" {
			return !queues(pod) || p.queued(pod)
		}
		cached, err := p.scheduler.Cache.GetPod(pod)
		return err == nil && cached.ResourceVersion == pod.ResourceVersion
	})
}

// remove removes a pod, and waits until the scheduler knows it no more.
func (p *process) remove(ctx context.Context, pod *corev1.Pod) error {
	p.mutex.Lock()
	i := p.index(pod.Namespace, pod.Name)
	p.pods = slices.Delete(slices.Clone(p.pods), i, i+1)
	err := p.client.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), pod.Namespace, pod.Name)
	p.mutex.Unlock()
	if err != nil {
		return fmt.Errorf("removing pod %s: %w", nameOf(pod), err)
	}
	return p.await(ctx, func(context.Context) bool {
		_, err := p.scheduler.Cache.GetPod(pod)
		return err != nil && !p.queued(pod)
	})
}

// allow writes how many disruptions budgets allow, where that has changed, and waits until the scheduler reads it.
func (p *process) allow(ctx context.Context, budgets []*policyv1.PodDisruptionBudget, before, allowed []int32) error {
	reader := p.informers.Policy().V1().PodDisruptionBudgets().Lister()
	for j, budget := range budgets {
		if allowed[j] == before[j] {
			continue
		}
		now := budget.DeepCopy()
		now.Status.DisruptionsAllowed = allowed[j]
		if err := p.client.Tracker().Update(policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets"), now, now.Namespace); err != nil {
			return fmt.Errorf("writing budget %s: %w", now.Name, err)
		}
		err := p.await(ctx, func(context.Context) bool {
			read, err := reader.PodDisruptionBudgets(now.Namespace).Get(now.Name)
			return err == nil && read.Status.DisruptionsAllowed == allowed[j]
		})
		if err != nil {
			return err
		}
	}
	return nil
}
