package kube

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
)

// Launcher runs workers as pods; under a queue, those above the minimum. It implements master.Launcher.
type Launcher struct {
	cluster *Cluster
	address string // of the master, for workers
	log     *slog.Logger
	events  chan coordinator.Event
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	// For requests that change something. Close waits for them a while: one that is cut off may or may not have taken
	// effect.
	requests context.Context
	giveUp   context.CancelFunc
	running  sync.WaitGroup

	mu        sync.Mutex
	workers   trainingjob.Workers // the newest workers.json
	requested string              // the newest request for a checkpoint
	creating  map[int]*creation
	minimum   minPods
}

// creation is a worker pod that is being made.
type creation struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// closeTimeout bounds how long Close waits for requests in flight.
const closeTimeout = 5 * time.Second

// Start reads workers.json and the existing worker pods, and watches both. The returned events describe the
// pods; lastWorker is the highest number ever used.
func Start(ctx context.Context, c *Cluster, address string, log *slog.Logger) (l *Launcher, existing []coordinator.PodChanged, lastWorker int, err error) {
	requests, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	ctx, cancel := context.WithCancel(requests)
	l = &Launcher{
		cluster: c, address: address, log: log, events: make(chan coordinator.Event, 256), ctx: ctx, cancel: cancel,
		requests: requests, giveUp: giveUp, creating: map[int]*creation{}, minimum: minPods{},
	}
	begun := l // l is nil when an error is returned
	defer func() {
		if err != nil {
			begun.Close()
		}
	}()
	configMap, err := c.Config(ctx)
	if err != nil {
		return nil, nil, 0, err
	}
	if l.workers, err = trainingjob.DecodeWorkers([]byte(configMap.Data[trainingjob.WorkersKey])); err != nil {
		return nil, nil, 0, err
	}
	l.requested = configMap.Annotations[trainingjob.AnnotationCheckpoint] // of the previous master
	if l.Queued() {
		if err := c.mustBeManaged(ctx); err != nil {
			return nil, nil, 0, err
		}
	}
	job := &job{}
	if err := c.get(ctx, c.batch, "jobs", c.Job.Name, job); err != nil {
		return nil, nil, 0, fmt.Errorf("read Job %s/%s: %w", c.Namespace, c.Job.Name, err)
	}
	lastWorker = -1
	if n, err := strconv.Atoi(job.Annotations[trainingjob.AnnotationLastWorkerID]); err == nil {
		lastWorker = n
	}
	pods, err := c.pods(ctx, c.ofWorkers)
	if err != nil {
		return nil, nil, 0, fmt.Errorf("list the worker pods: %w", err)
	}
	for i := range pods.Items {
		for _, e := range l.changes(&pods.Items[i]) {
			existing = append(existing, e)
			lastWorker = max(lastWorker, e.Worker)
			if l.Queued() && !e.Minimum && e.State == coordinator.PodEnded && e.Disrupted {
				l.Delete(e.Worker) // its master was evicted; its log is of no further use
			}
		}
	}
	informer := l.watch("pods", c.ofWorkers, &corev1.Pod{}, cache.ResourceEventHandlerFuncs{
		AddFunc:    l.podSeen,
		UpdateFunc: func(_, pod any) { l.podSeen(pod) },
		DeleteFunc: l.podGone,
	})
	l.running.Go(func() { l.missed(pods, informer) })
	byName := func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("metadata.name", trainingjob.ConfigMapName(c.Job.Name)).String()
	}
	l.watch("configmaps", byName, &corev1.ConfigMap{}, cache.ResourceEventHandlerFuncs{
		AddFunc:    l.configSeen,
		UpdateFunc: func(_, configMap any) { l.configSeen(configMap) },
	})
	return l, existing, lastWorker, nil
}

// Size is the current minimum and maximum number of workers.
func (l *Launcher) Size() (minimum, most int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.workers.Min, l.workers.Max
}

// Queued reports whether the job is under a queue.
func (l *Launcher) Queued() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.workers.Queue != nil
}

// missed reports pods that were deleted before the watch began, which no watch reports.
func (l *Launcher) missed(pods *corev1.PodList, informer cache.SharedInformer) {
	if !cache.WaitForCacheSync(l.ctx.Done(), informer.HasSynced) {
		return
	}
	for i := range pods.Items {
		if _, there, err := informer.GetStore().Get(&pods.Items[i]); err == nil && !there {
			l.podGone(&pods.Items[i])
		}
	}
}

// watch lists and watches until Close.
func (l *Launcher) watch(resource string, options func(*metav1.ListOptions), of runtime.Object, handler cache.ResourceEventHandler) cache.SharedInformer {
	informer := l.cluster.informer(resource, options, of, handler)
	l.running.Go(func() { informer.RunWithContext(l.ctx) })
	return informer
}

// Events implements master.Launcher.
func (l *Launcher) Events() <-chan coordinator.Event { return l.events }

func (l *Launcher) emit(e coordinator.Event) {
	select {
	case l.events <- e:
	case <-l.ctx.Done():
	}
}

func (l *Launcher) podSeen(o any) {
	for _, e := range l.changes(o.(*corev1.Pod)) {
		l.emit(e)
	}
}

func (l *Launcher) podGone(o any) {
	if unknown, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = unknown.Obj
	}
	if pod, ok := o.(*corev1.Pod); ok {
		for _, e := range l.changes(pod) {
			l.emit(gone(e))
		}
	}
}

// gone is the event of a pod that no longer exists.
func gone(e coordinator.PodChanged) coordinator.PodChanged {
	e.State, e.Terminating, e.Disrupted = coordinator.PodEnded, true, true
	return e
}

// changes are the events of an observed pod: none for a minimum worker that has been replaced.
func (l *Launcher) changes(pod *corev1.Pod) []coordinator.PodChanged {
	e, ok := podEvent(pod)
	if !ok {
		return nil
	}
	if !e.Minimum || e.Name == "" {
		return []coordinator.PodChanged{e}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.minimum.changes(pod, e)
}

func (l *Launcher) configSeen(o any) {
	configMap := o.(*corev1.ConfigMap)
	l.mu.Lock()
	requested := configMap.Annotations[trainingjob.AnnotationCheckpoint]
	again := requested != "" && requested != l.requested
	l.requested = requested
	l.mu.Unlock()
	if again {
		l.emit(coordinator.CheckpointRequested{})
	}
	workers, err := trainingjob.DecodeWorkers([]byte(configMap.Data[trainingjob.WorkersKey]))
	err = errors.Join(l.cluster.verify(configMap), err)
	if forged := (*trainingjob.ForgedError)(nil); errors.As(err, &forged) {
		l.cluster.notify(coordinator.Notice{Warning: true, Reason: "WorkersIgnored", Message: err.Error() + ". The workers are not changed"})
	}
	if err != nil {
		l.log.Warn("the new workers.json is ignored", "error", err)
		return
	}
	l.mu.Lock()
	l.workers = workers
	l.mu.Unlock()
	l.emit(coordinator.Resize{Min: workers.Min, Max: workers.Max})
}

// podEvent converts a pod to the coordinator's event.
func podEvent(pod *corev1.Pod) (coordinator.PodChanged, bool) {
	id, ok := trainingjob.WorkerID(pod)
	if !ok {
		return coordinator.PodChanged{}, false
	}
	e := coordinator.PodChanged{Worker: id, Minimum: pod.Labels[trainingjob.LabelMinimum] == "true", Terminating: pod.DeletionTimestamp != nil, Cause: trainingjob.CauseOf(pod)}
	if _, ours := pod.Labels[trainingjob.LabelWorkerID]; !ours {
		e.Name = pod.Name // its Job has named it
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			e.Terminating, e.Disrupted = true, true
			e.Preempted = e.Preempted || c.Reason == corev1.PodReasonPreemptionByScheduler
		}
	}
	if _, evicted := trainingjob.EvictionMessage(pod); evicted {
		e.Terminating, e.Preempted = true, true
	}
	e.Disrupted = e.Disrupted || e.Terminating
	switch pod.Status.Phase {
	case corev1.PodRunning:
		e.State = coordinator.PodRunning
	case corev1.PodSucceeded, corev1.PodFailed:
		e.State = coordinator.PodEnded
		e.Disrupted = e.Disrupted || endedFromOutside(pod)
	default:
		e.State = coordinator.PodPending
	}
	if e.State != coordinator.PodRunning {
		e.Reason = trainingjob.PodReason(pod, nil)
	}
	return e, true
}

// endedFromOutside reports whether a container was signalled to stop (143), or was killed, but not by the memory limit.
func endedFromOutside(pod *corev1.Pod) bool {
	for _, s := range pod.Status.ContainerStatuses {
		if t := s.State.Terminated; t != nil {
			return t.ExitCode == coordinator.ExitInterrupted || (t.ExitCode == 137 && t.Reason != "OOMKilled")
		}
	}
	return pod.Status.Reason == "NodeLost" || pod.Status.Reason == "Shutdown" || pod.Status.Reason == "Terminated"
}

// Create implements master.Launcher: it retries until the pod exists or is no longer wanted, and reports why it does
// not exist.
func (l *Launcher) Create(worker int, minimum bool) {
	ctx, cancel := context.WithCancel(l.ctx)
	this := &creation{cancel: cancel, done: make(chan struct{})}
	l.mu.Lock()
	l.creating[worker] = this
	l.mu.Unlock()
	l.running.Go(func() {
		defer close(this.done)
		defer cancel()
		for wait := time.Second; ; wait = min(2*wait, 15*time.Second) {
			err := l.create(ctx, worker, minimum)
			if err == nil || apierrors.IsAlreadyExists(err) || ctx.Err() != nil {
				break
			}
			l.log.Warn("a worker pod cannot be created; trying again", "worker", worker, "error", err)
			l.emit(coordinator.PodChanged{Worker: worker, Minimum: minimum, State: coordinator.PodPending, Reason: err.Error()})
			select {
			case <-time.After(wait):
			case <-ctx.Done():
			}
		}
		l.mu.Lock()
		delete(l.creating, worker)
		l.mu.Unlock()
	})
}

// create makes one pod. It reads the Job first: a deleted or suspended Job gets no more workers.
func (l *Launcher) create(ctx context.Context, worker int, minimum bool) error {
	c := l.cluster
	job := &job{}
	if err := c.get(ctx, c.batch, "jobs", c.Job.Name, job); err != nil {
		return fmt.Errorf("look at the Job before a worker is created: %w", err)
	}
	switch {
	case job.UID != c.Job.UID || job.DeletionTimestamp != nil:
		return fmt.Errorf("no more workers: Job %s is being deleted", c.Job.Name)
	case job.suspended():
		return fmt.Errorf("no more workers until Job %s is resumed: it is suspended", c.Job.Name)
	}
	if n, err := strconv.Atoi(job.Annotations[trainingjob.AnnotationLastWorkerID]); err != nil || n < worker {
		if err := l.rememberNumber(ctx, worker); err != nil {
			return fmt.Errorf("write the highest worker number to the Job: %w", err)
		}
	}
	l.mu.Lock()
	pod := trainingjob.WorkerPod(l.workers, c.Job, worker, minimum, l.address)
	l.mu.Unlock()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	requests, cancel := context.WithTimeout(l.requests, requestTimeout)
	defer cancel()
	created := &corev1.Pod{}
	if err := c.core.Post().Namespace(c.Namespace).Resource("pods").Body(pod).Do(requests).Into(created); err != nil {
		return err
	}
	if l.Queued() && !trainingjob.Managed(created) {
		l.emit(coordinator.Unhealthy{Reason: (&UnmanagedError{c.Namespace}).Error()})
	}
	return nil
}

func (l *Launcher) rememberNumber(ctx context.Context, worker int) error {
	return l.cluster.patch(ctx, l.cluster.batch, "jobs", l.cluster.Job.Name, map[string]any{"metadata": map[string]any{
		"uid": l.cluster.Job.UID, "annotations": map[string]string{trainingjob.AnnotationLastWorkerID: strconv.Itoa(worker)},
	}})
}

// Delete implements master.Launcher. It first cancels a creation in flight, so that it cannot take effect later.
func (l *Launcher) Delete(worker int) {
	l.mu.Lock()
	creating := l.creating[worker]
	l.mu.Unlock()
	l.running.Go(func() {
		if creating != nil {
			creating.cancel()
			<-creating.done
		}
		for wait := time.Second; ; wait = min(2*wait, 15*time.Second) {
			err := l.delete(worker)
			switch {
			case err == nil || l.requests.Err() != nil:
				return
			case apierrors.IsNotFound(err):
				// No watch reports the end of a pod that never existed.
				l.emit(coordinator.PodChanged{Worker: worker, State: coordinator.PodEnded, Terminating: true, Disrupted: true})
				return
			}
			l.log.Warn("a worker pod cannot be deleted; trying again", "worker", worker, "error", err)
			select {
			case <-time.After(wait):
			case <-l.requests.Done():
			}
		}
	})
}

func (l *Launcher) delete(worker int) error {
	ctx, cancel := context.WithTimeout(l.requests, requestTimeout)
	defer cancel()
	name := trainingjob.WorkerName(l.cluster.Job.Name, worker)
	l.mu.Lock()
	if pod := l.minimum[worker]; pod != nil {
		name = pod.Name
	}
	l.mu.Unlock()
	return l.cluster.core.Delete().Namespace(l.cluster.Namespace).Resource("pods").Name(name).Do(ctx).Error()
}

// Close stops watching and creating. It waits a while for requests in flight and for deletions.
func (l *Launcher) Close() {
	l.cancel()
	timeout := time.AfterFunc(closeTimeout, l.giveUp)
	defer timeout.Stop()
	defer l.giveUp()
	l.running.Wait()
}
