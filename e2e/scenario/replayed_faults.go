package scenario

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"
)

// loseNode stops a node, deletes its Node object and ends its pods, as a file means a fault. The pods get the status that
// the garbage collection of pods gives them, which would run only 40 to 80 s later.
func (p *replayRun) loseNode(ctx context.Context, name string) error {
	node := p.cluster.Nodes[name]
	p.log.Add(eventlog.Event{Fault: &eventlog.Fault{Kind: eventlog.NodeStopped, Target: node}})
	if err := p.cluster.Faults.StopNode(ctx, node); err != nil {
		return fmt.Errorf("stop node %s: %w", node, err)
	}
	p.log.Add(eventlog.Event{Fault: &eventlog.Fault{Kind: eventlog.NodeDeleted, Target: node}})
	if err := p.clients.kubernetes.CoreV1().Nodes().Delete(ctx, node, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete node %s: %w", node, err)
	}
	pods := p.clients.kubernetes.CoreV1().Pods(p.cluster.Namespace)
	all, err := pods.List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		return fmt.Errorf("list the pods of node %s: %w", node, err)
	}
	for _, pod := range all.Items {
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		pod.Status.Phase = corev1.PodFailed
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByPodGC",
			Message: "PodGC: node no longer exists", LastTransitionTime: metav1.NewTime(time.Now()),
		})
		if _, err := pods.UpdateStatus(ctx, &pod, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("end pod %s: %w", pod.Name, err)
		}
		if err := pods.Delete(ctx, pod.Name, *metav1.NewDeleteOptions(0)); err != nil {
			return fmt.Errorf("delete pod %s: %w", pod.Name, err)
		}
	}
	return nil
}

// losePod deletes the running pod of a job that a fault means: the master, or the one with the lowest number.
func (p *replayRun) losePod(ctx context.Context, fault scenariofile.Fault) error {
	role := taskRole
	if slices.ContainsFunc(p.File.Jobs, func(j scenariofile.Job) bool { return j.Name == fault.Job && j.Elastic != nil }) {
		role = trainingjob.RoleWorker
		if fault.Master {
			role = trainingjob.RoleMaster
		}
	}
	running := slices.DeleteFunc(eventlog.Replay(p.log.Events()).PodsOf(fault.Job, role), func(pod *eventlog.PodHistory) bool {
		return pod.Phase != string(corev1.PodRunning) || !pod.Deleting.IsZero() || !pod.Ended.IsZero()
	})
	if len(running) == 0 {
		return nil // as in the simulation
	}
	name := slices.MinFunc(running, func(a, b *eventlog.PodHistory) int { return cmp.Compare(podNumber(a.Name), podNumber(b.Name)) }).Name
	kind, options := eventlog.PodDeleted, metav1.DeleteOptions{}
	if fault.Kill {
		kind, options = eventlog.PodKilled, *metav1.NewDeleteOptions(0)
	}
	p.log.Add(eventlog.Event{Fault: &eventlog.Fault{Kind: kind, Target: name}})
	if err := p.clients.kubernetes.CoreV1().Pods(p.cluster.Namespace).Delete(ctx, name, options); err != nil {
		return fmt.Errorf("delete pod %s: %w", name, err)
	}
	return nil
}

// podNumber is the number at the end of a worker's name; 0 of names that a Job has made up.
func podNumber(name string) int {
	number, err := strconv.Atoi(name[strings.LastIndexByte(name, '-')+1:])
	if err != nil {
		return 0
	}
	return number
}

// killAPIServer also waits until the API server serves again.
func (p *replayRun) killAPIServer(ctx context.Context) error {
	p.log.Add(eventlog.Event{Fault: &eventlog.Fault{Kind: eventlog.APIServerKilled}})
	if err := p.cluster.Faults.KillAPIServer(ctx); err != nil {
		return fmt.Errorf("kill the API server: %w", err)
	}
	return p.clients.apiServerIsReady(ctx)
}

func (p *replayRun) startNode(ctx context.Context, name string) error {
	node := p.cluster.Nodes[name]
	p.log.Add(eventlog.Event{Fault: &eventlog.Fault{Kind: eventlog.NodeStarted, Target: node}})
	if err := p.cluster.Faults.StartNode(ctx, node); err != nil {
		return fmt.Errorf("start node %s: %w", node, err)
	}
	return nil
}
