package differential

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
)

// DecideInProcess runs kube-scheduler's code on the pending pods of s, one after the other, as if nothing else
// happened: no victim ends, and no other client changes anything. after is the resulting cluster.
func DecideInProcess(ctx context.Context, s *Snapshot) (steps []Step, after *Snapshot, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p, err := newProcess(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	defer p.stop(cancel)
	for range s.Pending() {
		step, err := p.step(ctx, p.pop)
		if err != nil {
			return steps, nil, err
		}
		steps = append(steps, step)
	}
	return steps, p.snapshot(), nil
}

// DecideOneInProcess has it decide on one pending pod, whatever waits before it. order, where it is not nil, shuffles
// the pods of every node in the scheduler's cache, where a pod moves to the end whenever it changes: of pods that are
// equal in everything else, the scheduler spares the first.
func DecideOneInProcess(ctx context.Context, s *Snapshot, pod string, order *rand.Rand) (Step, error) {
	subject := s.pod(pod)
	if subject == nil || !waits(subject) {
		return Step{}, fmt.Errorf("pod %s is not pending in the snapshot", pod)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p, err := newProcess(ctx, s)
	if err != nil {
		return Step{}, err
	}
	defer p.stop(cancel)
	if order != nil {
		all := slices.Clone(p.pods)
		order.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		if err := p.arrange(all); err != nil {
			return Step{}, err
		}
	}
	return p.step(ctx, func(logger klog.Logger) (*framework.QueuedPodInfo, error) {
		return p.popOne(klog.NewContext(ctx, logger), subject)
	})
}

// process is a scheduler over objects in memory.
type process struct {
	scheduler *scheduler.Scheduler
	client    *fake.Clientset
	informers informers.SharedInformerFactory
	// closeQueue closes the scheduler's queue once: the second time it would panic.
	closeQueue func()
	popped     *corev1.Pod
	failed     bool   // the popped pod's attempt has failed: it is not being bound
	nominated  string // where the last failure nominated the popped pod to; "" where it changed nothing
	choice     choice
	static     *Snapshot // everything but the pods, which change

	mutex   sync.Mutex
	pods    []*corev1.Pod // in the order of creation
	version int           // of the last change
	deleted []string
}

func newProcess(ctx context.Context, s *Snapshot) (*process, error) {
	p := &process{static: s, pods: cloned(s.Pods)}
	objects := s.Clone()
	// The scheduler lists pods that have not ended; the objects in memory support no field selectors.
	objects.Pods = slices.DeleteFunc(objects.Pods, finished)
	p.versioned(objects)
	//nolint:staticcheck // Its replacement tracks the owners of fields, at ten times the cost, and no test here needs them.
	p.client = fake.NewSimpleClientset(objects.objects()...)
	p.client.PrependReactor("create", "pods", p.bind)
	p.client.PrependReactor("delete", "pods", p.delete)
	p.client.PrependReactor("patch", "pods", p.patch)
	p.control()

	p.informers = newInformers(p.client)
	ctx = klog.NewContext(ctx, logr.Discard())
	var err error
	p.scheduler, err = scheduler.New(ctx, p.client, p.informers, nil, func(string) events.EventRecorderLogger { return &events.FakeRecorder{} },
		scheduler.WithParallelism(1)) // with more threads it is chance which of many nodes are found first
	if err != nil {
		return nil, fmt.Errorf("making the scheduler: %w", err)
	}
	p.closeQueue = sync.OnceFunc(p.scheduler.SchedulingQueue.Close)
	fail := p.scheduler.FailureHandler
	p.scheduler.FailureHandler = func(ctx context.Context, f framework.Framework, info *framework.QueuedPodInfo, status *fwk.Status, nominating *fwk.NominatingInfo, start time.Time) {
		p.mutex.Lock()
		p.failed = true
		if nominating.Mode() == fwk.ModeOverride {
			p.nominated = nominating.NominatedNodeName
		}
		p.mutex.Unlock()
		fail(ctx, f, info, status, nominating, start)
	}
	if err := p.choice.watch(p.scheduler); err != nil {
		return nil, err
	}
	p.informers.StartWithContext(ctx)
	if err := p.informers.WaitForCacheSyncWithContext(ctx).AsError(); err != nil {
		return nil, fmt.Errorf("reading the objects: %w", err)
	}
	if err := p.await(ctx, p.loaded); err != nil {
		return nil, fmt.Errorf("handling the objects: %w", err)
	}
	if len(s.Devices.Classes) > 0 || len(s.Storage.Classes) > 0 {
		if err := p.scheduler.WaitForHandlersSync(ctx); err != nil {
			return nil, fmt.Errorf("handling the claims: %w", err)
		}
	}
	return p, nil
}

// loaded reports whether the scheduler has taken in all nodes and pods. Its own WaitForHandlersSync looks ten times a
// second.
func (p *process) loaded(context.Context) bool {
	for _, node := range p.static.Nodes {
		if info, err := p.scheduler.Cache.GetNode(node.Name); err != nil || info.Node() == nil { // nil: only its pods are known
			return false
		}
	}
	for _, pod := range p.pods {
		switch {
		case finished(pod):
		case pod.Spec.NodeName != "":
			if _, err := p.scheduler.Cache.GetPod(pod); err != nil {
				return false
			}
		case queues(pod):
			if !p.queued(pod) {
				return false
			}
		}
	}
	return true
}

// arrange has pods change, one after the other, and stay the same: the last of them is the last of its node then.
func (p *process) arrange(pods []*corev1.Pod) error {
	for _, pod := range pods {
		if pod.Spec.NodeName != "" && !finished(pod) {
			if err := p.scheduler.Cache.UpdatePod(logr.Discard(), pod, pod.DeepCopy()); err != nil {
				return fmt.Errorf("moving pod %s in the scheduler's cache: %w", nameOf(pod), err)
			}
		}
	}
	return nil
}

func (p *process) stop(cancel context.CancelFunc) {
	p.closeQueue()
	cancel()
	p.informers.Shutdown()
}

// step has the scheduler take the next pod from its queue, and records what it decides.
func (p *process) step(ctx context.Context, next func(klog.Logger) (*framework.QueuedPodInfo, error)) (Step, error) {
	before := p.snapshot()
	if err := p.cycle(ctx, next); err != nil {
		return Step{}, err
	}
	step := Step{Before: before, Pod: before.pod(nameOf(p.popped).String()), Decision: p.decision()}
	step.Decision.Equals = p.choice.equals(ctx)
	step.Order, step.Candidates = p.order(), p.choice.compared()
	return step, nil
}

// cycle has the scheduler take the next pod from its queue and waits until everything that it does with it is done.
func (p *process) cycle(ctx context.Context, next func(klog.Logger) (*framework.QueuedPodInfo, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience.Medium)
	defer cancel()
	closeQueue := context.AfterFunc(ctx, p.closeQueue) // so that Pop returns
	defer closeQueue()
	p.popped, p.failed, p.nominated = nil, false, ""
	p.takeFrom(func(logger klog.Logger) (*framework.QueuedPodInfo, error) {
		info, err := next(logger)
		if err == nil && info != nil {
			p.popped = info.Pod
		}
		return info, err
	})
	p.choice.forget()
	p.deleted = nil
	p.scheduler.ScheduleOne(klog.NewContext(ctx, logr.New(&p.choice)))
	if p.popped == nil {
		return fmt.Errorf("the scheduler's queue was empty for %s", patience.Medium)
	}
	if err := p.await(ctx, p.settled); err != nil {
		return fmt.Errorf("after the decision on pod %s: %w", nameOf(p.popped), err)
	}
	return nil
}

// order is that of the nodes in the scheduler's cache.
func (p *process) order() (names []string) {
	nodes, err := p.scheduler.Profiles[corev1.DefaultSchedulerName].SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		panic("differential: the scheduler's snapshot has no list of nodes: " + err.Error())
	}
	for _, node := range nodes {
		names = append(names, node.Node().Name)
	}
	return names
}

// decision is the decision about the popped pod.
func (p *process) decision() Decision {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	pod := p.find(p.popped.Namespace, p.popped.Name)
	d := Decision{Node: pod.Spec.NodeName}
	if d.Node != "" {
		return d
	}
	d.Nominated = p.nominated
	d.Victims = slices.Sorted(slices.Values(p.deleted))
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled {
			d.Message = condition.Message
		}
	}
	return d
}

// await looks until the scheduler's cache or queue is as it shall be, which it soon is.
func (p *process) await(ctx context.Context, reached func(context.Context) bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience.Medium)
	defer cancel()
	for !reached(ctx) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("the scheduler's cache does not have the objects as they are: %w", context.Cause(ctx))
		case <-time.After(100 * time.Microsecond):
		}
	}
	return nil
}

// settled reports whether the binding, or the eviction of victims, has ended and the scheduler's cache has every pod as
// it now is.
func (p *process) settled(ctx context.Context) bool {
	if !p.choice.plugin.PreEnqueue(ctx, p.popped).IsSuccess() { // it is still evicting
		return false
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if !p.failed && p.find(p.popped.Namespace, p.popped.Name).Spec.NodeName == "" { // it is still being bound
		return false
	}
	for _, pod := range p.pods {
		if pod.Spec.NodeName == "" || finished(pod) {
			continue
		}
		cached, err := p.scheduler.Cache.GetPod(pod)
		if err != nil || cached.Spec.NodeName != pod.Spec.NodeName || !cached.DeletionTimestamp.Equal(pod.DeletionTimestamp) {
			return false
		}
		if assumed, err := p.scheduler.Cache.IsAssumedPod(pod); err != nil || assumed {
			return false
		}
	}
	return p.nominationsKnown()
}

// nominationsKnown reports whether the scheduler's nominations are those of the pods' status. It takes those of other
// pods than the popped one back by way of the API server.
func (p *process) nominationsKnown() bool {
	known := map[string]string{}
	for _, node := range p.static.Nodes {
		for _, info := range p.scheduler.SchedulingQueue.NominatedPodsForNode(node.Name) {
			known[nameOf(info.GetPod()).String()] = node.Name
		}
	}
	for _, pod := range p.pods {
		if waits(pod) && known[nameOf(pod).String()] != pod.Status.NominatedNodeName {
			return false
		}
	}
	return true
}

func (p *process) snapshot() *Snapshot {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	now := *p.static
	now.Pods = cloned(p.pods)
	if err := p.stored(&now); err != nil {
		panic("differential: the tracker has no list of its own objects: " + err.Error())
	}
	return &now
}
