package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/await"
)

// The example of a job on unreliable nodes, and the name of its job.
const (
	chaosExample = "unreliable-nodes"
	ChaosJob     = "survivor"
)

// The job's size while nothing is broken, and while a node is missing.
const (
	chaosWorkers     = 3
	chaosWorkersLeft = chaosWorkers - 1
)

// The job's duration: it must still train when the last fault has been injected. The restarts of the node and of the
// API server take longest.
const (
	chaosEpochs = 2
	chaosPace   = 150 * time.Millisecond
)

// returnLimit is the timeout for a node's return. It allows for a machine that boots.
const returnLimit = 5 * time.Minute

// Stages of the scenario, besides StageSubmit, StageFinished, StageDestroy and StageCompare.
const (
	StageLoseWorkers   = "lose-workers"
	StageLoseNode      = "lose-node"
	StageLoseMaster    = "lose-master"
	StageNodeReturns   = "node-returns"
	StageLoseAPIServer = "lose-api-server"
)

// runChaos is the scenario of a job that loses workers, a node, its master and the API server, one after the other.
func runChaos(ctx context.Context, r *runner) error {
	r.vars["image"], r.vars["data_host_path"] = r.cluster.Image, r.cluster.DataDir
	r.vars["epochs"], r.vars["pace"] = strconv.Itoa(chaosEpochs), patience.Scaled(chaosPace).String()

	r.beginStage(StageSubmit, "terraform apply: job %s, of a master and three workers, each on a node of its own.", ChaosJob)
	if err := r.apply(ctx, StageSubmit); err != nil {
		return err
	}
	if err := r.log.Wait(ctx, ChaosJob+" trains with three workers", startLimit, trainsWith(ChaosJob, chaosWorkers)); err != nil {
		return err
	}
	for _, inject := range []func(context.Context, *runner) error{loseWorkers, loseNodeAndMaster, loseAPIServer} {
		if err := inject(ctx, r); err != nil {
			return err
		}
	}
	if err := r.waitForSuccess(ctx, ChaosJob); err != nil {
		return err
	}

	r.beginStage(StageFinished, "The job has finished.")
	if err := r.plan(ctx, StageFinished); err != nil {
		return err
	}
	model, err := finalModel(ctx, r.clients.kubernetes, r.cluster.Namespace, ChaosJob)
	if err != nil {
		return err
	}
	if err := r.destroy(ctx); err != nil {
		return err
	}
	r.beginStage(StageCompare, "The same training once more, undisturbed and without a cluster: is its model the same?")
	return r.compareModel(ctx, model, localRun{job: ChaosJob, part: trainPart, epochs: chaosEpochs, gradsToWait: chaosWorkers})
}

// loseWorkers deletes a worker's pod with its grace period, and another one without.
func loseWorkers(ctx context.Context, r *runner) error {
	r.beginStage(StageLoseWorkers, "A worker's pod is deleted, and another one without a grace period.")
	workers := runningPods(r.log, "worker")
	if len(workers) != chaosWorkers {
		return fmt.Errorf("%d workers of %s run: %v", len(workers), ChaosJob, names(workers))
	}
	for i, fault := range []eventlog.FaultKind{eventlog.PodDeleted, eventlog.PodKilled} {
		if err := r.deletePod(ctx, fault, workers[i].Name); err != nil {
			return err
		}
		if err := r.log.Wait(ctx, "a replacement of "+workers[i].Name+" trains", preemptLimit,
			trainsWithout(chaosWorkers, workers[i].Name)); err != nil {
			return err
		}
	}
	return r.plan(ctx, StageLoseWorkers)
}

// loseNodeAndMaster stops a node that runs a worker, deletes the master while the job has fewer workers, and starts the
// node again.
func loseNodeAndMaster(ctx context.Context, r *runner) (err error) {
	node, err := r.nodeToLose(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil { // a scenario that fails or is interrupted must not leave the node stopped
			err = errors.Join(err, withCleanupTimeout(ctx, func(ctx context.Context) error { return r.cluster.Faults.StartNode(ctx, node) }))
		}
	}()
	r.beginStage(StageLoseNode, "Node %s fails, with a worker on it.", node)
	if err := r.loseNode(ctx, node); err != nil {
		return err
	}
	if err := r.log.Wait(ctx, ChaosJob+" continues with two workers, and a third is Pending", preemptLimit, continuesWhileWorkerIsPending); err != nil {
		return err
	}
	if err := r.plan(ctx, StageLoseNode); err != nil {
		return err
	}

	r.beginStage(StageLoseMaster, "The master's pod is deleted. Its Job creates another one.")
	masters := runningPods(r.log, "master")
	if len(masters) != 1 {
		return fmt.Errorf("%d masters of %s run: %v", len(masters), ChaosJob, names(masters))
	}
	generation := eventlog.Replay(r.log.Events()).Job(ChaosJob).Last().Status.Generation
	if err := r.deletePod(ctx, eventlog.PodDeleted, masters[0].Name); err != nil {
		return err
	}
	if err := r.log.Wait(ctx, "the next master of "+ChaosJob+" continues with two workers", preemptLimit, func(h *eventlog.History) (bool, error) {
		ready, err := trainsWith(ChaosJob, chaosWorkersLeft)(h)
		return ready && h.Job(ChaosJob).Last().Status.Generation > generation, err
	}); err != nil {
		return err
	}
	if err := r.plan(ctx, StageLoseMaster); err != nil {
		return err
	}

	r.beginStage(StageNodeReturns, "Node %s is started again.", node)
	r.recordFault(eventlog.NodeStarted, node)
	if err := r.cluster.Faults.StartNode(ctx, node); err != nil {
		return fmt.Errorf("start node %s again: %w", node, err)
	}
	if err := r.log.Wait(ctx, ChaosJob+" trains with three workers again", returnLimit, trainsWith(ChaosJob, chaosWorkers)); err != nil {
		return err
	}
	return r.plan(ctx, StageNodeReturns)
}

// loseAPIServer kills the API server while the job trains.
func loseAPIServer(ctx context.Context, r *runner) error {
	r.beginStage(StageLoseAPIServer, "The API server is killed. Its supervisor starts it again.")
	r.recordFault(eventlog.APIServerKilled, "")
	killed := time.Now()
	if err := r.cluster.Faults.KillAPIServer(ctx); err != nil {
		return fmt.Errorf("kill the API server: %w", err)
	}
	if err := r.clients.apiServerIsReady(ctx); err != nil {
		return err
	}
	if err := r.log.Wait(ctx, "the master of "+ChaosJob+" reports again", preemptLimit, func(h *eventlog.History) (bool, error) {
		last := h.Job(ChaosJob).Last()
		return last.Time.After(killed) && last.Status.WorkersRunning == chaosWorkers, notFailed(ChaosJob, last.Status)
	}); err != nil {
		return err
	}
	return r.plan(ctx, StageLoseAPIServer)
}

// faultLine describes the fault that the scenario injects now.
func (r *runner) recordFault(kind eventlog.FaultKind, target string) {
	r.log.Add(eventlog.Event{Fault: &eventlog.Fault{Kind: kind, Target: target}})
}

// deletePod deletes a pod, with its grace period or without one.
func (r *runner) deletePod(ctx context.Context, kind eventlog.FaultKind, name string) error {
	r.recordFault(kind, name)
	options := metav1.DeleteOptions{}
	if kind == eventlog.PodKilled {
		options = *metav1.NewDeleteOptions(0)
	}
	if err := r.clients.kubernetes.CoreV1().Pods(r.cluster.Namespace).Delete(ctx, name, options); err != nil {
		return fmt.Errorf("delete pod %s: %w", name, err)
	}
	return nil
}

// nodeToLose selects a node that runs a worker and not the master. Of these it prefers the one with the fewest other
// pods, so that the fault spares the cluster's own components.
func (r *runner) nodeToLose(ctx context.Context) (string, error) {
	pods, err := r.clients.kubernetes.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", fmt.Errorf("list the pods to select a node to stop: %w", err)
	}
	others, candidates := map[string]int{}, map[string]bool{}
	for _, pod := range pods.Items {
		if pod.Namespace != r.cluster.Namespace || pod.Labels[trainingjob.LabelJobName] != ChaosJob {
			others[pod.Spec.NodeName]++
		}
	}
	for _, worker := range runningPods(r.log, "worker") {
		candidates[worker.Node] = true
	}
	for _, master := range runningPods(r.log, "master") {
		delete(candidates, master.Node)
	}
	best := ""
	for node := range candidates {
		if best == "" || others[node] < others[best] || others[node] == others[best] && node < best {
			best = node
		}
	}
	if best == "" {
		return "", errors.New("no node has a worker and not the master")
	}
	return best, nil
}

// loseNode stops a node and deletes its Node object, as cloud providers do, and the job's pods on it, as an operator
// does who knows that the node is gone. Kubernetes would delete these pods itself, 40 to 80 s after the Node object
// (pod garbage collection runs every 20 s, and a node must have been missing for 40 s).
func (r *runner) loseNode(ctx context.Context, node string) error {
	var lost []*eventlog.PodHistory
	for _, worker := range runningPods(r.log, "worker") {
		if worker.Node == node {
			lost = append(lost, worker)
		}
	}
	r.recordFault(eventlog.NodeStopped, node)
	if err := r.cluster.Faults.StopNode(ctx, node); err != nil {
		return fmt.Errorf("stop node %s: %w", node, err)
	}
	if err := r.log.Wait(ctx, ChaosJob+" notices that a worker does not respond", preemptLimit, trainsWithout(chaosWorkersLeft, names(lost)...)); err != nil {
		return err
	}
	r.recordFault(eventlog.NodeDeleted, node)
	if err := r.clients.kubernetes.CoreV1().Nodes().Delete(ctx, node, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete node %s: %w", node, err)
	}
	for _, worker := range lost {
		if err := r.deletePod(ctx, eventlog.PodKilled, worker.Name); err != nil {
			return err
		}
	}
	return nil
}

// apiServerIsReady waits until the API server serves again.
func (c clients) apiServerIsReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("timed out after %s", startLimit))
	defer cancel()
	return await.Until(ctx, "the API server serves again", pollInterval, func(ctx context.Context) error {
		return c.kubernetes.CoreV1().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// runningPods are the job's pods in a role that run and are not being deleted, in the order of their creation.
func runningPods(log *Log, role string) []*eventlog.PodHistory {
	return slices.DeleteFunc(eventlog.Replay(log.Events()).PodsOf(ChaosJob, role), func(pod *eventlog.PodHistory) bool {
		return pod.Phase != string(corev1.PodRunning) || !pod.Deleting.IsZero() || !pod.Ended.IsZero()
	})
}

// trainsWithout waits until the job trains with that many workers, none of them one of the named.
func trainsWithout(workers int, lost ...string) func(*eventlog.History) (bool, error) {
	return func(h *eventlog.History) (bool, error) {
		status := h.Job(ChaosJob).Last().Status
		for _, worker := range status.Workers {
			if worker.State == workerReady && slices.Contains(lost, worker.Pod) {
				return false, notFailed(ChaosJob, status)
			}
		}
		return trainsWith(ChaosJob, workers)(h)
	}
}

// continuesWhileWorkerIsPending waits until the newest worker is unschedulable and the others have made steps since.
func continuesWhileWorkerIsPending(h *eventlog.History) (bool, error) {
	workers := h.PodsOf(ChaosJob, "worker")
	newest := workers[len(workers)-1]
	points := h.Job(ChaosJob).Points
	if newest.Unschedulable.IsZero() || !newest.Bound.IsZero() {
		return false, notFailed(ChaosJob, points[len(points)-1].Status)
	}
	since := slices.IndexFunc(points, func(p eventlog.Point) bool { return p.Time.After(newest.Unschedulable) })
	last := points[len(points)-1].Status
	return since >= 0 && last.WorkersRunning == chaosWorkersLeft && last.StepsDone > points[since].Status.StepsDone, notFailed(ChaosJob, last)
}
