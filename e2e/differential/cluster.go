package differential

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
)

// gate keeps a pending pod from the scheduler until everything else of its snapshot exists.
const gate = "differential.example.com/snapshot"

// A Cluster has kube-scheduler, the program, decide on snapshots that are put to its API server. Nothing else may act
// on the objects there, and preemption must be synchronous, as is so with simcluster.SchedulerOnly.
type Cluster struct {
	client kubernetes.Interface
}

// NewCluster is a Cluster of the API server that config names.
func NewCluster(config *rest.Config) (*Cluster, error) {
	config = rest.CopyConfig(config)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.WarningHandlerWithContext = rest.NoWarnings{} // snapshots contain deprecated fields
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &Cluster{client: client}, nil
}

// Decide applies a snapshot to the API server, lets the scheduler decide on its pending pods one after the other, and
// removes everything. The steps' snapshots are the contents of the API server, in which later pods do not exist yet.
func (c *Cluster) Decide(ctx context.Context, s *Snapshot) (steps []Step, err error) {
	defer func() {
		if clearErr := c.clear(context.WithoutCancel(ctx)); err == nil {
			err = clearErr
		}
	}()
	if err := c.put(ctx, s); err != nil {
		return nil, err
	}
	for _, pod := range s.Pending() {
		step, err := c.step(ctx, pod)
		if err != nil {
			return steps, fmt.Errorf("pod %s: %w", nameOf(pod), err)
		}
		steps = append(steps, step)
	}
	return steps, nil
}

func (c *Cluster) step(ctx context.Context, pending *corev1.Pod) (Step, error) {
	ctx, cancel := context.WithTimeout(ctx, patience.Medium)
	defer cancel()
	gated := pending.DeepCopy()
	gated.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: gate}}
	pod, err := c.pod(ctx, gated)
	if err != nil {
		return Step{}, err
	}
	before, err := c.read(ctx)
	if err != nil {
		return Step{}, err
	}
	pod.Spec.SchedulingGates = nil
	pods := c.client.CoreV1().Pods(pod.Namespace)
	if pod, err = pods.Update(ctx, pod, metav1.UpdateOptions{}); err != nil {
		return Step{}, fmt.Errorf("opening its gate: %w", err)
	}
	step := Step{Before: before, Pod: before.pod(nameOf(pod).String())}
	step.Pod.Spec.SchedulingGates = nil
	if pod, err = c.decided(ctx, pod); err != nil {
		return Step{}, fmt.Errorf("waiting for a decision: %w", err)
	}
	if pod.Spec.NodeName != "" {
		step.Decision.Node = pod.Spec.NodeName
		return step, c.run(ctx, pod)
	}
	step.Decision.Message = pod.Status.Conditions[slices.IndexFunc(pod.Status.Conditions, isUnschedulable)].Message
	// A nomination that merely stays has a message about why nothing was preempted.
	if _, preemption, ok := strings.Cut(step.Decision.Message, "preemption: "); !ok || strings.HasPrefix(preemption, placementFound) {
		step.Decision.Nominated = pod.Status.NominatedNodeName
		step.Decision.Victims, err = c.victims(ctx, before)
	}
	return step, err
}

// decided is a pod as the scheduler's first decision on it leaves it. A watch sees every state of it: a look now and then
// could miss the first decision when the scheduler tries the pod again.
func (c *Cluster) decided(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	watcher, err := c.client.CoreV1().Pods(pod.Namespace).Watch(ctx, metav1.ListOptions{
		FieldSelector:   fields.OneTermEqualSelector(metav1.ObjectNameField, pod.Name).String(),
		ResourceVersion: pod.ResourceVersion,
	})
	if err != nil {
		return nil, err
	}
	_, err = watchtools.UntilWithoutRetry(ctx, watcher, func(event watch.Event) (bool, error) {
		now, ok := event.Object.(*corev1.Pod)
		if !ok || event.Type == watch.Deleted {
			return false, fmt.Errorf("the watch says %s: %v", event.Type, event.Object)
		}
		pod = now
		return pod.Spec.NodeName != "" || slices.ContainsFunc(pod.Status.Conditions, isUnschedulable), nil
	})
	return pod, err
}

func isUnschedulable(c corev1.PodCondition) bool {
	return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
}

// run has a bound pod run, as a kubelet would.
func (c *Cluster) run(ctx context.Context, pod *corev1.Pod) error {
	started := metav1.NewTime(epoch.Add(4 * time.Hour))
	pod.Status.Phase, pod.Status.StartTime = corev1.PodRunning, &started
	_, err := c.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return err
}

// victims are the pods that have been evicted since. With synchronous preemption (prepareCandidate in kube-scheduler's
// executor.go) the API server has taken the eviction of every victim when the pod's status says that it waits for them:
// the scheduler evicts within its cycle, and writes that status afterwards. So there is nothing to wait for. With
// asynchronous preemption nothing proves the end: no event or metric tells an eviction that is still to come from none,
// which there is where all victims are being deleted already.
func (c *Cluster) victims(ctx context.Context, before *Snapshot) ([]string, error) {
	list, err := c.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var victims []string
	for i := range list.Items {
		was := before.pod(nameOf(&list.Items[i]).String())
		if list.Items[i].DeletionTimestamp != nil && was != nil && was.DeletionTimestamp == nil {
			victims = append(victims, nameOf(was).String())
		}
	}
	slices.Sort(victims)
	return victims, nil
}
