package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"

	"github.com/elastic-training/terraform-provider-elastic/e2e/scenario/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainingjob"
)

// Record adds every state of the jobs' pods and every report of their masters in a namespace to the log, until stop is
// called, which waits for the watches to end. It watches rather than polls: a worker is Pending for some 40 ms only
// before room is made for it.
func Record(ctx context.Context, client kubernetes.Interface, namespace string, log *Log) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	var recorders sync.WaitGroup
	stop = func() { cancel(); recorders.Wait() }

	pods := client.CoreV1().Pods(namespace)
	podList, err := pods.List(ctx, metav1.ListOptions{LabelSelector: trainingjob.LabelJobName})
	if err != nil {
		stop()
		return nil, fmt.Errorf("list the pods of namespace %s: %w", namespace, err)
	}
	podWatch, err := toolswatch.NewRetryWatcherWithContext(ctx, podList.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = trainingjob.LabelJobName
			return pods.Watch(ctx, options)
		},
	})
	if err != nil {
		stop()
		return nil, fmt.Errorf("watch the pods of namespace %s: %w", namespace, err)
	}
	recorders.Go(func() { follow(podWatch, log, podEvent) })

	configMaps := client.CoreV1().ConfigMaps(namespace)
	mapList, err := configMaps.List(ctx, metav1.ListOptions{})
	if err != nil {
		stop()
		return nil, fmt.Errorf("list the config maps of namespace %s: %w", namespace, err)
	}
	mapWatch, err := toolswatch.NewRetryWatcherWithContext(ctx, mapList.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return configMaps.Watch(ctx, options)
		},
	})
	if err != nil {
		stop()
		return nil, fmt.Errorf("watch the config maps of namespace %s: %w", namespace, err)
	}
	recorders.Go(func() { follow(mapWatch, log, jobEvent) })
	return stop, nil
}

// follow adds what the watch shows until it ends.
func follow(w *toolswatch.RetryWatcher, log *Log, translate func(watch.EventType, runtime.Object) *eventlog.Event) {
	defer func() { w.Stop(); <-w.Done() }()
	for seen := range w.ResultChan() {
		if event := translate(seen.Type, seen.Object); event != nil {
			log.Add(*event)
		}
	}
}

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
	for _, condition := range pod.Status.Conditions {
		switch {
		case condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse:
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

// jobEvent is a master's report as an event; nil for anything else, a report that is not JSON among them: the story
// then waits in vain and says for what.
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

// pollInterval is between two looks at what cannot be watched in one call.
const pollInterval = 200 * time.Millisecond
