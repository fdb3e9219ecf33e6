package eventlogtest

import (
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

// Masters of the chaos scenario's job.
var (
	ChaosMaster      = eventlog.Pod{Name: "survivor-x7k2q", Job: "survivor", Role: "master", Node: "node-1"}
	ChaosMasterAgain = eventlog.Pod{Name: "survivor-p9d4m", Job: "survivor", Role: "master", Node: "node-2"}
)

// ChaosWorker is a worker of the chaos scenario's job.
func ChaosWorker(id int, node string) eventlog.Pod {
	return eventlog.Pod{Name: trainingjob.WorkerName("survivor", id), Job: "survivor", Role: "worker", Node: node}
}

// Chaos is the scenario of a job that loses workers, a node, its master and the API server, as it should go.
func Chaos() []eventlog.Event {
	b := New()
	for _, name := range []string{"node-1", "node-2", "node-3"} {
		b.Add(0, eventlog.Event{Node: &eventlog.Node{Name: name, CPU: "3920m", Memory: "15Gi"}})
	}
	stage := func(second float64, name string) {
		b.Add(second, eventlog.Event{Stage: &eventlog.Stage{Name: name}})
	}
	plan := func(second float64, after string) {
		b.Add(second, eventlog.Event{Plan: &eventlog.Plan{After: after}})
	}
	fault := func(second float64, kind eventlog.FaultKind, target string) {
		b.Add(second, eventlog.Event{Fault: &eventlog.Fault{Kind: kind, Target: target}})
	}
	report := func(second float64, phase trainingjob.Phase, generation, step int64, workers ...eventlog.Pod) {
		status := trainingjob.Status{Phase: phase, Generation: generation, StepsDone: step, StepsTotal: 1000}
		for _, worker := range workers {
			status.WorkersRunning++
			status.Workers = append(status.Workers, trainingjob.WorkerStatus{Pod: worker.Name, State: "ready", Gradients: step / 2})
		}
		b.Job(second, "survivor", status)
	}
	const running = trainingjob.PhaseRunning
	worker0, worker1, worker2 := ChaosWorker(0, "node-1"), ChaosWorker(1, "node-2"), ChaosWorker(2, "node-3")
	worker3, worker4, worker5 := ChaosWorker(3, "node-1"), ChaosWorker(4, "node-2"), ChaosWorker(5, "node-3")
	// leaves is the way of a running pod that is terminated.
	leaves := func(second float64, pod eventlog.Pod) {
		pod.Phase, pod.Deleting = "Running", true
		b.Pod(second, pod)
		b.Ends(second+0.1, pod, trainingjob.ExitStopped)
	}
	// vanishes is that of one that is killed.
	vanishes := func(second float64, pod eventlog.Pod) {
		pod.Phase, pod.Deleting, pod.Deleted = "Running", true, true
		b.Pod(second, pod)
	}

	stage(0, "submit")
	b.Starts(1, ChaosMaster)
	for _, pod := range []eventlog.Pod{worker0, worker1, worker2} {
		b.Starts(1.5, pod)
	}
	report(3, running, 1, 10, worker0, worker1, worker2)
	plan(4, "submit")

	stage(5, "lose-workers")
	fault(5, eventlog.PodDeleted, worker0.Name)
	leaves(5.1, worker0)
	b.Starts(5.3, worker3)
	report(7, running, 1, 50, worker1, worker2, worker3)
	fault(7.1, eventlog.PodKilled, worker1.Name)
	vanishes(7.2, worker1)
	b.Starts(7.3, worker4)
	report(9, running, 1, 90, worker2, worker3, worker4)
	plan(10, "lose-workers")

	stage(11, "lose-node")
	fault(11, eventlog.NodeStopped, "node-3")
	report(12, running, 1, 120, worker3, worker4)
	fault(12.1, eventlog.NodeDeleted, "node-3")
	fault(12.2, eventlog.PodKilled, worker2.Name)
	vanishes(12.3, worker2)
	waiting := worker5
	waiting.Node, waiting.Phase = "", "Pending"
	b.Pod(12.4, waiting)
	waiting.Unschedulable = NoRoom
	b.Pod(12.5, waiting)
	report(14, running, 1, 140, worker3, worker4)
	plan(15, "lose-node")

	stage(16, "lose-master")
	fault(16, eventlog.PodDeleted, ChaosMaster.Name)
	leaves(16.1, ChaosMaster)
	report(16.15, trainingjob.PhaseWaiting, 1, 145, worker3, worker4)
	b.Starts(17, ChaosMasterAgain)
	report(18, running, 2, 10, worker3, worker4)
	report(20, running, 2, 30, worker3, worker4)
	plan(21, "lose-master")

	stage(22, "node-returns")
	fault(22, eventlog.NodeStarted, "node-3")
	found := worker5
	found.Phase = "Pending"
	b.Pod(23, found)
	found.Phase = "Running"
	b.Pod(23.4, found)
	report(25, running, 2, 90, worker3, worker4, worker5)
	plan(26, "node-returns")

	stage(27, "lose-api-server")
	fault(27, eventlog.APIServerKilled, "")
	report(32, running, 2, 240, worker3, worker4, worker5)
	plan(33, "lose-api-server")

	b.Ends(59.9, worker5, 0) // which may be observed before the last report
	report(60, trainingjob.PhaseSucceeded, 2, 1000, worker3, worker4, worker5)
	for _, pod := range []eventlog.Pod{worker3, worker4, ChaosMasterAgain} {
		b.Ends(60.5, pod, 0)
	}
	stage(61, "finished")
	plan(62, "finished")
	stage(63, "destroy")
	b.Add(65, eventlog.Event{Leftovers: &eventlog.Leftovers{}})
	stage(65, "compare")
	b.Add(75, eventlog.Event{Result: &eventlog.Result{
		Job: "survivor", SHA256: "77aa01c4be19", UndisturbedSHA256: "77aa01c4be19", UndisturbedTook: 9 * time.Second,
	}})
	return b.Events
}
