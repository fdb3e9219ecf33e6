package scenario

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"
	"k8s.io/klog/v2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

// recorder adds observed states to a log. It watches rather than polls, because a worker may be Pending for only 40 ms
// before another pod is preempted for it.
type recorder struct {
	log       *Log
	namespace string
	watches   sync.WaitGroup
}

// record adds every state of the namespace's pods, of its workloads where Kueue is installed, and of the masters'
// status reports to the log until stop is called, which waits for the watches to end.
func (c clients) record(ctx context.Context, namespace string, log *Log) (stop func(), err error) {
	// The watcher's messages about an API server that restarts are of no use: follow lists again.
	ctx, cancel := context.WithCancel(klog.NewContext(ctx, klog.Logger{}))
	r := &recorder{log: log, namespace: namespace}
	stop = func() { cancel(); r.watches.Wait() }

	err = errors.Join(
		follow(ctx, r, "pods", c.kubernetes.CoreV1().Pods(namespace), podEvent),
		follow(ctx, r, "config maps", c.kubernetes.CoreV1().ConfigMaps(namespace), jobEvent),
	)
	if installed := follow(ctx, r, "workloads", c.kueue.Workloads(namespace), workloadEvent); !apierrors.IsNotFound(installed) {
		err = errors.Join(err, installed)
	}
	if err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}

// follow adds what a watch of a kind shows to the log until the context ends. What was there before is not added.
func follow[L interface {
	runtime.Object
	metav1.ListInterface
}](ctx context.Context, r *recorder, what string, kind cluster.Listing[L], translate func(watch.EventType, runtime.Object) *eventlog.Event,
) error {
	list, err := kind.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the %s of namespace %s: %w", what, r.namespace, err)
	}
	add := func(seen watch.EventType, object runtime.Object) {
		if event := translate(seen, object); event != nil {
			r.log.Add(*event)
		}
	}
	known, err := objectsOf(list)
	if err != nil {
		return fmt.Errorf("list the %s of namespace %s: %w", what, r.namespace, err)
	}
	r.watches.Go(func() {
		for ctx.Err() == nil {
			known.watch(ctx, kind, list.GetResourceVersion(), add)
			// The watch cannot be resumed: a restarted API server does not have the earlier versions.
			again, err := kind.List(ctx, metav1.ListOptions{})
			if err != nil {
				pause(ctx)
				continue
			}
			if now, err := objectsOf(again); err == nil {
				known.reconcile(now, add)
				list, known = again, now
			}
		}
	})
	return nil
}

// objects are those that a recorder has observed and not seen deleted.
type objects map[types.UID]metav1.Object

func objectsOf(list runtime.Object) (objects, error) {
	items, err := meta.ExtractList(list)
	if err != nil {
		return nil, err
	}
	all := objects{}
	for _, item := range items {
		object, err := meta.Accessor(item)
		if err != nil {
			return nil, err
		}
		all[object.GetUID()] = object
	}
	return all, nil
}

// watch adds the states that a watch shows until it ends. Short interruptions do not end it.
func (known objects) watch(ctx context.Context, kind watcher, from string, add func(watch.EventType, runtime.Object)) {
	w, err := toolswatch.NewRetryWatcherWithContext(ctx, from, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return kind.Watch(ctx, options)
		},
	})
	if err != nil {
		pause(ctx)
		return
	}
	defer func() { w.Stop(); <-w.Done() }()
	for seen := range w.ResultChan() {
		object, err := meta.Accessor(seen.Object)
		if err != nil {
			return // not an object but the reason why the stream has ended
		}
		known[object.GetUID()] = object
		if seen.Type == watch.Deleted {
			delete(known, object.GetUID())
		}
		add(seen.Type, seen.Object)
	}
}

// reconcile adds the changes between two lists, in the order in which the objects were created.
func (known objects) reconcile(now objects, add func(watch.EventType, runtime.Object)) {
	for _, object := range known.byAge() {
		if now[object.GetUID()] == nil {
			add(watch.Deleted, object.(runtime.Object))
		}
	}
	for _, object := range now.byAge() {
		if before := known[object.GetUID()]; before == nil || before.GetResourceVersion() != object.GetResourceVersion() {
			add(watch.Modified, object.(runtime.Object))
		}
	}
}

func (known objects) byAge() []metav1.Object {
	return slices.SortedFunc(maps.Values(known), func(a, b metav1.Object) int {
		return cmp.Or(a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time), strings.Compare(a.GetName(), b.GetName()))
	})
}

// watcher is a client that can watch.
type watcher interface {
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// pause waits before a retry.
func pause(ctx context.Context) {
	select {
	case <-time.After(pollInterval):
	case <-ctx.Done():
	}
}

// taskRole is the role of a queued task's pods.
const taskRole = "task"

// podEvent is a pod as an event; nil for anything else.
func podEvent(kind watch.EventType, object runtime.Object) *eventlog.Event {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return nil
	}
	state := eventlog.Pod{
		Name: pod.Name, UID: string(pod.UID), Node: pod.Spec.NodeName, Phase: string(pod.Status.Phase),
		Job: pod.Labels[trainingjob.LabelJobName], Role: pod.Labels[trainingjob.LabelRole],
		PriorityClass: pod.Spec.PriorityClassName,
		Deleting:      pod.DeletionTimestamp != nil,
		Deleted:       kind == watch.Deleted,
	}
	if state.Job == "" {
		state.Job, state.Role = pod.Labels[batchv1.JobNameLabel], taskRole
	}
	for _, condition := range pod.Status.Conditions {
		switch {
		// A gated pod (another reason) waits for quota, not for a node; its workload shows that.
		case condition.Type == corev1.PodScheduled && condition.Reason == corev1.PodReasonUnschedulable:
			state.Unschedulable = condition.Message
		case condition.Type == corev1.DisruptionTarget && condition.Status == corev1.ConditionTrue:
			state.Disruption, state.Cause = condition.Reason, condition.Message
		}
	}
	for _, container := range pod.Status.ContainerStatuses {
		if terminated := container.State.Terminated; terminated != nil {
			state.ExitCode, state.Reason = &terminated.ExitCode, terminated.Reason
		} else if waiting := container.State.Waiting; waiting != nil {
			state.Reason = waiting.Reason
		}
	}
	return &eventlog.Event{Pod: &state}
}

// workloadEvent is a workload as an event; nil for anything else.
func workloadEvent(kind watch.EventType, object runtime.Object) *eventlog.Event {
	workload, ok := object.(*kueue.Workload)
	if !ok {
		return nil
	}
	state := eventlog.Workload{
		Name: workload.Name, UID: string(workload.UID), Queue: string(workload.Spec.QueueName),
		Deleted: kind == watch.Deleted,
	}
	for _, owner := range workload.OwnerReferences {
		state.Owners = append(state.Owners, eventlog.Owner{Kind: owner.Kind, Name: owner.Name})
	}
	if ref := workload.Spec.PriorityClassRef; ref != nil {
		state.PriorityClass = ref.Name
	}
	if workload.Spec.Priority != nil {
		state.Priority = *workload.Spec.Priority
	}
	if admission := workload.Status.Admission; admission != nil {
		state.ReservedIn = string(admission.ClusterQueue)
	}
	for _, condition := range workload.Status.Conditions {
		holds := condition.Status == metav1.ConditionTrue
		switch {
		case condition.Type == kueue.WorkloadQuotaReserved && !holds:
			state.Waits = condition.Message
		case condition.Type == kueue.WorkloadAdmitted && holds:
			state.Admitted = true
		case condition.Type == kueue.WorkloadFinished && holds:
			state.Finished = true
		case condition.Type == kueue.WorkloadEvicted && holds:
			state.Evicted, state.Cause = condition.Reason, condition.Message
		case condition.Type == kueue.WorkloadPreempted && holds:
			state.Preempted = condition.Reason
		}
	}
	if state.Waits == state.Cause {
		state.Waits = "" // right after an eviction both conditions contain the reason of the eviction
	}
	return &eventlog.Event{Workload: &state}
}

// jobEvent is a master's report as an event; nil for anything else, also for a report that is not JSON: the scenario's
// wait then times out.
func jobEvent(kind watch.EventType, object runtime.Object) *eventlog.Event {
	configMap, ok := object.(*corev1.ConfigMap)
	if !ok || kind == watch.Deleted {
		return nil
	}
	job, ok := strings.CutSuffix(configMap.Name, trainingjob.StatusName(""))
	if !ok {
		return nil
	}
	text, ok := configMap.Data[trainingjob.StatusKey]
	if !ok {
		return nil
	}
	var status trainingjob.Status
	if err := json.Unmarshal([]byte(text), &status); err != nil {
		return nil
	}
	return &eventlog.Event{Job: &eventlog.Job{Name: job, Status: status}}
}

// pollInterval is the interval of polls where no watch is possible.
const pollInterval = 200 * time.Millisecond
