package differential

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// gate keeps a pending pod from the scheduler until everything else of its snapshot exists.
const gate = "differential.example.com/snapshot"

// pollPause is the time between two looks at a pod that the scheduler is deciding on, which takes milliseconds.
const pollPause = 3 * time.Millisecond

// A Cluster has kube-scheduler, the program, decide on snapshots that are put to its API server. Nothing else may act
// on the objects there, as is so with simcluster.SchedulerOnly.
type Cluster struct {
	client     kubernetes.Interface
	http       *http.Client
	metricsURL string
	// preemptions is how many preemptions the scheduler has carried out, as far as is known.
	preemptions int
}

// NewCluster is a Cluster of the API server that config names and of the scheduler that serves its metrics at a port of
// this machine.
func NewCluster(config *rest.Config, schedulerPort int) (*Cluster, error) {
	config = rest.CopyConfig(config)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.WarningHandlerWithContext = rest.NoWarnings{} // snapshots contain deprecated fields
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	forMetrics, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	return &Cluster{client: client, http: forMetrics, metricsURL: fmt.Sprintf("https://127.0.0.1:%d/metrics", schedulerPort)}, nil
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
	ctx, cancel := context.WithTimeout(ctx, stepPatience)
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
	for {
		if pod, err = pods.Get(ctx, pod.Name, metav1.GetOptions{}); err != nil {
			return Step{}, err
		}
		if pod.Spec.NodeName != "" {
			step.Decision.Node = pod.Spec.NodeName
			return step, c.run(ctx, pod)
		}
		if i := slices.IndexFunc(pod.Status.Conditions, isUnschedulable); i >= 0 {
			step.Decision.Message = pod.Status.Conditions[i].Message
			break
		}
		if err := pause(ctx); err != nil {
			return Step{}, fmt.Errorf("waiting for a decision: %w", err)
		}
	}
	// A nomination that merely stays has a message about why nothing was preempted.
	if _, preemption, ok := strings.Cut(step.Decision.Message, "preemption: "); !ok || strings.HasPrefix(preemption, placementFound) {
		step.Decision.Nominated = pod.Status.NominatedNodeName
		step.Decision.Victims, err = c.victims(ctx, before, pod)
	}
	return step, err
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

// victims are the pods that are evicted for a pod that was nominated to a node.
func (c *Cluster) victims(ctx context.Context, before *Snapshot, preemptor *corev1.Pod) ([]string, error) {
	if err := c.awaitPreemption(ctx, before, preemptor); err != nil {
		return nil, err
	}
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

// idlePatience is the wait for a preemption that may have nothing to do.
const idlePatience = 500 * time.Millisecond

// awaitPreemption waits until the scheduler has carried a preemption out, which its metrics count. It does not count
// one whose victims are all being deleted already.
func (c *Cluster) awaitPreemption(ctx context.Context, before *Snapshot, preemptor *corev1.Pod) error {
	mayBeIdle := slices.ContainsFunc(before.Pods, func(p *corev1.Pod) bool {
		return p.Spec.NodeName == preemptor.Status.NominatedNodeName && p.DeletionTimestamp != nil
	})
	deadline := time.Now().Add(idlePatience)
	for {
		count, err := c.carriedOut(ctx)
		if err != nil {
			return fmt.Errorf("reading the scheduler's metrics: %w", err)
		}
		if count > c.preemptions {
			c.preemptions = count
			return nil
		}
		if mayBeIdle && time.Now().After(deadline) {
			return nil
		}
		if err := pause(ctx); err != nil {
			return fmt.Errorf("waiting for the victims' eviction: %w", err)
		}
	}
}

var carriedOutLine = regexp.MustCompile(`(?m)^scheduler_preemption_goroutines_execution_total\{.*\} (\d+)$`)

func (c *Cluster) carriedOut(ctx context.Context) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.metricsURL, http.NoBody)
	if err != nil {
		return 0, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s: %s: %w", c.metricsURL, response.Status, err)
	}
	count := 0
	for _, match := range carriedOutLine.FindAllSubmatch(text, -1) {
		n, err := strconv.Atoi(string(match[1]))
		if err != nil {
			return 0, err
		}
		count += n
	}
	return count, nil
}

func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(pollPause):
		return nil
	}
}
