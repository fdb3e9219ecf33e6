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

// How the job takes its time: it must outlive everything that is broken after its master was deleted, for which a node's
// return and an API server's are the slowest.
const (
	chaosEpochs = 2
	chaosPace   = "150ms"
)

// returnLimit is for a machine that boots.
const returnLimit = 5 * time.Minute

// Stages of the story, besides StageSubmit, StageFinished, StageDestroy and StageCompare.
const (
	StageLoseWorkers   = "lose-workers"
	StageLoseNode      = "lose-node"
	StageLoseMaster    = "lose-master"
	StageNodeReturns   = "node-returns"
	StageLoseAPIServer = "lose-api-server"
)

// tellChaos is the story of a job that loses workers, a node, its master and the API server, one after the other.
func tellChaos(ctx context.Context, t *telling) error {
	t.vars["image"], t.vars["data_host_path"] = t.cluster.Image, t.cluster.DataDir
	t.vars["epochs"], t.vars["pace"] = strconv.Itoa(chaosEpochs), chaosPace

	t.stage(StageSubmit, "terraform apply: job %s, of a master and three workers, each on a node of its own.", ChaosJob)
	if err := t.apply(ctx, StageSubmit); err != nil {
		return err
	}
	if err := t.log.Wait(ctx, ChaosJob+" trains with three workers", startLimit, membersOf(ChaosJob, chaosWorkers)); err != nil {
		return err
	}
	for _, breakIt := range []func(context.Context, *telling) error{loseWorkers, loseNodeAndMaster, loseAPIServer} {
		if err := breakIt(ctx, t); err != nil {
			return err
		}
	}
	if err := t.succeed(ctx, ChaosJob); err != nil {
		return err
	}

	t.stage(StageFinished, "The job has finished.")
	if err := t.plan(ctx, StageFinished); err != nil {
		return err
	}
	model, err := finalModel(ctx, t.clients.kubernetes, t.cluster.Namespace, ChaosJob)
	if err != nil {
		return err
	}
	if err := t.destroy(ctx); err != nil {
		return err
	}
	t.stage(StageCompare, "The same job once more, undisturbed and without a cluster: is its model the same?")
	return t.compare(ctx, model, localRun{job: ChaosJob, part: trainPart, epochs: chaosEpochs, gradsToWait: chaosWorkers})
}

// loseWorkers takes a worker away in good order, and another one without a word.
func loseWorkers(ctx context.Context, t *telling) error {
	t.stage(StageLoseWorkers, "A worker's pod is deleted, and another one without a grace period.")
	workers := livingPods(t.log, "worker")
	if len(workers) != chaosWorkers {
		return fmt.Errorf("%d workers of %s live: %v", len(workers), ChaosJob, names(workers))
	}
	for i, fault := range []eventlog.FaultKind{eventlog.PodDeleted, eventlog.PodKilled} {
		if err := t.deletePod(ctx, fault, workers[i].Name); err != nil {
			return err
		}
		if err := t.log.Wait(ctx, "another worker trains in the place of "+workers[i].Name, preemptLimit,
			membersWithout(chaosWorkers, workers[i].Name)); err != nil {
			return err
		}
	}
	return t.plan(ctx, StageLoseWorkers)
}

// loseNodeAndMaster lets a node die, with a worker on it, deletes the master while the job is smaller, and lets the node
// come back.
func loseNodeAndMaster(ctx context.Context, t *telling) (err error) {
	node, err := t.nodeToLose(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil { // the cluster is left as it was found also by a story that fails, or is interrupted
			err = errors.Join(err, inOrder(ctx, func(ctx context.Context) error { return t.cluster.Faults.StartNode(ctx, node) }))
		}
	}()
	t.stage(StageLoseNode, "Node %s dies, with a worker on it.", node)
	if err := t.loseNode(ctx, node); err != nil {
		return err
	}
	if err := t.log.Wait(ctx, ChaosJob+" goes on with two workers, and a third waits for room", preemptLimit, goesOnWithoutRoom); err != nil {
		return err
	}
	if err := t.plan(ctx, StageLoseNode); err != nil {
		return err
	}

	t.stage(StageLoseMaster, "The master's pod is deleted. Its Job makes another one.")
	masters := livingPods(t.log, "master")
	if len(masters) != 1 {
		return fmt.Errorf("%d masters of %s live: %v", len(masters), ChaosJob, names(masters))
	}
	generation := eventlog.Replay(t.log.Events()).Job(ChaosJob).Last().Status.Generation
	if err := t.deletePod(ctx, eventlog.PodDeleted, masters[0].Name); err != nil {
		return err
	}
	if err := t.log.Wait(ctx, "the next master of "+ChaosJob+" goes on with two workers", preemptLimit, func(h *eventlog.History) (bool, error) {
		ready, err := membersOf(ChaosJob, chaosWorkersLeft)(h)
		return ready && h.Job(ChaosJob).Last().Status.Generation > generation, err
	}); err != nil {
		return err
	}
	if err := t.plan(ctx, StageLoseMaster); err != nil {
		return err
	}

	t.stage(StageNodeReturns, "Node %s comes back.", node)
	t.fault(eventlog.NodeStarted, node)
	if err := t.cluster.Faults.StartNode(ctx, node); err != nil {
		return fmt.Errorf("start node %s again: %w", node, err)
	}
	if err := t.log.Wait(ctx, ChaosJob+" trains with three workers again", returnLimit, membersOf(ChaosJob, chaosWorkers)); err != nil {
		return err
	}
	return t.plan(ctx, StageNodeReturns)
}

// loseAPIServer kills the API server while the job trains.
func loseAPIServer(ctx context.Context, t *telling) error {
	t.stage(StageLoseAPIServer, "The API server is killed, and started again by whatever watches over it.")
	t.fault(eventlog.APIServerKilled, "")
	killed := time.Now()
	if err := t.cluster.Faults.KillAPIServer(ctx); err != nil {
		return fmt.Errorf("kill the API server: %w", err)
	}
	if err := t.apiServerIsReady(ctx); err != nil {
		return err
	}
	if err := t.log.Wait(ctx, "the master of "+ChaosJob+" reports again", preemptLimit, func(h *eventlog.History) (bool, error) {
		last := h.Job(ChaosJob).Last()
		return last.Time.After(killed) && last.Status.WorkersRunning == chaosWorkers, notFailed(ChaosJob, last.Status)
	}); err != nil {
		return err
	}
	return t.plan(ctx, StageLoseAPIServer)
}

// fault says what the story breaks now.
func (t *telling) fault(kind eventlog.FaultKind, target string) {
	t.log.Add(eventlog.Event{Fault: &eventlog.Fault{Kind: kind, Target: target}})
}

// deletePod deletes a pod, with its grace period or without one.
func (t *telling) deletePod(ctx context.Context, kind eventlog.FaultKind, name string) error {
	t.fault(kind, name)
	options := metav1.DeleteOptions{}
	if kind == eventlog.PodKilled {
		options = *metav1.NewDeleteOptions(0)
	}
	if err := t.clients.kubernetes.CoreV1().Pods(t.cluster.Namespace).Delete(ctx, name, options); err != nil {
		return fmt.Errorf("delete pod %s: %w", name, err)
	}
	return nil
}

// nodeToLose is a node with a worker and without the master: of these, the one with the fewest pods that are not the
// story's, for it is not the cluster's own machinery that is to be broken here.
func (t *telling) nodeToLose(ctx context.Context) (string, error) {
	pods, err := t.clients.kubernetes.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", fmt.Errorf("look for a node to lose: %w", err)
	}
	others, candidates := map[string]int{}, map[string]bool{}
	for _, pod := range pods.Items {
		if pod.Namespace != t.cluster.Namespace || pod.Labels[trainingjob.LabelJobName] != ChaosJob {
			others[pod.Spec.NodeName]++
		}
	}
	for _, worker := range livingPods(t.log, "worker") {
		candidates[worker.Node] = true
	}
	for _, master := range livingPods(t.log, "master") {
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

// loseNode lets a node die and deletes its Node object, as clouds do, and the job's pods on it, as somebody does who
// knows that it is dead. Kubernetes would delete these itself, 40 to 80 s after the Node object (pod garbage collection:
// every 20 s, and a node must have been missing for 40 s).
func (t *telling) loseNode(ctx context.Context, node string) error {
	var lost []*eventlog.Life
	for _, worker := range livingPods(t.log, "worker") {
		if worker.Node == node {
			lost = append(lost, worker)
		}
	}
	t.fault(eventlog.NodeStopped, node)
	if err := t.cluster.Faults.StopNode(ctx, node); err != nil {
		return fmt.Errorf("stop node %s: %w", node, err)
	}
	if err := t.log.Wait(ctx, ChaosJob+" notices that a worker is silent", preemptLimit, membersWithout(chaosWorkersLeft, names(lost)...)); err != nil {
		return err
	}
	t.fault(eventlog.NodeDeleted, node)
	if err := t.clients.kubernetes.CoreV1().Nodes().Delete(ctx, node, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete node %s: %w", node, err)
	}
	for _, worker := range lost {
		if err := t.deletePod(ctx, eventlog.PodKilled, worker.Name); err != nil {
			return err
		}
	}
	return nil
}

// apiServerIsReady waits until the API server serves again.
func (t *telling) apiServerIsReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("it did not happen within %s", startLimit))
	defer cancel()
	return await.Until(ctx, "the API server serves again", pollInterval, func(ctx context.Context) error {
		return t.clients.kubernetes.CoreV1().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// livingPods are those of the job in a role that run and that nobody has asked to end, in the order of their creation.
func livingPods(log *Log, role string) []*eventlog.Life {
	return slices.DeleteFunc(eventlog.Replay(log.Events()).PodsOf(ChaosJob, role), func(life *eventlog.Life) bool {
		return life.Phase != string(corev1.PodRunning) || !life.Deleting.IsZero() || !life.Ended.IsZero()
	})
}

// membersWithout waits for the job to train with that many workers, and none of the named.
func membersWithout(workers int, lost ...string) func(*eventlog.History) (bool, error) {
	return func(h *eventlog.History) (bool, error) {
		status := h.Job(ChaosJob).Last().Status
		for _, worker := range status.Workers {
			if worker.State == workerReady && slices.Contains(lost, worker.Pod) {
				return false, notFailed(ChaosJob, status)
			}
		}
		return membersOf(ChaosJob, workers)(h)
	}
}

// goesOnWithoutRoom waits until a worker has been found no room for, and the job has done steps with the others since.
func goesOnWithoutRoom(h *eventlog.History) (bool, error) {
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
