package eventlogtest

import (
	"fmt"
	"slices"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

// Pods of the scenario of an elastic job under a queue: its group before and after the eviction.
var (
	GroupMaster       = eventlog.Pod{Name: "elastic-7lpcb", Job: "elastic", Role: "master", Node: "node-1"}
	GroupMinimum      = eventlog.Pod{Name: "elastic-min-0-spmcs", Job: "elastic", Role: "worker", Node: "node-3"}
	GroupMasterAgain  = eventlog.Pod{Name: "elastic-q2x8d", Job: "elastic", Role: "master", Node: "node-1"}
	GroupMinimumAgain = eventlog.Pod{Name: "elastic-min-0-rsfwr", Job: "elastic", Role: "worker", Node: "node-3"}
)

// AboveMinimum is a worker of the elastic job that its master made.
func AboveMinimum(id int) eventlog.Pod {
	return eventlog.Pod{Name: trainingjob.WorkerName("elastic", id), Job: "elastic", Role: "worker", Node: "node-2"}
}

// WorkloadOf is the workload of a single worker.
func WorkloadOf(pod eventlog.Pod) eventlog.Workload {
	return eventlog.Workload{
		Name: "pod-" + pod.Name + "-0a1b2", UID: "uid-workload-" + pod.Name, Owners: []eventlog.Owner{{Kind: "Pod", Name: pod.Name}},
		Queue: "training-queue", PriorityClass: "burst", Priority: 10,
	}
}

// GroupWorkload is the workload of the elastic job's master and minimum workers.
var GroupWorkload = eventlog.Workload{
	Name: "elastic-min-87932864", UID: "uid-group", Queue: "training-queue", PriorityClass: "minimum", Priority: 100,
	Owners: []eventlog.Owner{{Kind: "Pod", Name: GroupMaster.Name}, {Kind: "Pod", Name: GroupMinimum.Name}},
}

// urgentJob are the pods and the workload of an urgent job of so many workers, all of them minimum workers.
func urgentJob(name string, workers int) (pods []eventlog.Pod, workload eventlog.Workload) {
	pods = []eventlog.Pod{{Name: name + "-mq4zt", Job: name, Role: "master", Node: "node-1"}}
	for id := range workers {
		pods = append(pods, eventlog.Pod{Name: fmt.Sprintf("%s-%d-k7v47", trainingjob.MinJobName(name), id), Job: name, Role: "worker", Node: "node-3"})
	}
	workload = eventlog.Workload{
		Name: trainingjob.MinJobName(name) + "-83c3ba91", UID: "uid-group-" + name, Queue: "training-queue", PriorityClass: "urgent", Priority: 1000,
	}
	for _, pod := range pods {
		workload.Owners = append(workload.Owners, eventlog.Owner{Kind: "Pod", Name: pod.Name})
	}
	return pods, workload
}

// UnderAQueue is the scenario of an elastic job under a queue as it should go.
func UnderAQueue() []eventlog.Event {
	b := New()
	stage := func(second float64, name string) {
		b.Add(second, eventlog.Event{Stage: &eventlog.Stage{Name: name}})
	}
	plan := func(second float64, after string) {
		b.Add(second, eventlog.Event{Plan: &eventlog.Plan{After: after}})
	}
	generation := int64(1) // of the elastic job's masters
	report := func(second float64, job string, phase trainingjob.Phase, step int64, workers int) {
		status := trainingjob.Status{Phase: phase, Generation: 1, StepsDone: step, StepsTotal: 100, WorkersRunning: workers}
		if job == "elastic" {
			status.Generation, status.StepsTotal = generation, 600
		}
		b.Job(second, job, status)
	}
	admitted := func(w eventlog.Workload) eventlog.Workload {
		w.ReservedIn, w.Admitted = "training", true
		return w
	}
	evicted := func(w eventlog.Workload) eventlog.Workload {
		w.Evicted, w.Preempted, w.Cause = eventlog.EvictedByPreemption, "InClusterQueue", preemptedFor
		return w
	}
	finished := func(w eventlog.Workload) eventlog.Workload {
		w.Finished = true
		return w
	}
	begins := func(second float64, ids ...int) {
		for _, id := range ids {
			b.Workload(second, admitted(WorkloadOf(AboveMinimum(id))))
			b.Starts(second+0.1, AboveMinimum(id))
		}
	}
	taken := func(second float64, w eventlog.Workload, pods ...eventlog.Pod) {
		b.Workload(second, evicted(admitted(w)))
		for _, pod := range pods {
			pod.Phase = "Running"
			b.Ends(second+0.2, pod, trainingjob.ExitStopped)
		}
		b.Workload(second+0.3, evicted(w))
	}
	// lasts is the way of an urgent job: admitted, running, succeeded.
	lasts := func(from, to float64, name string, workers int) {
		pods, workload := urgentJob(name, workers)
		b.Workload(from, admitted(workload))
		for _, pod := range pods {
			b.Starts(from+0.1, pod)
		}
		report(from+1, name, trainingjob.PhaseRunning, 10, workers)
		report(to, name, trainingjob.PhaseSucceeded, 100, workers)
		for _, pod := range pods {
			b.Ends(to+0.1, pod, 0)
		}
		b.Workload(to+0.2, finished(admitted(workload)))
	}
	const elastic, running = "elastic", trainingjob.PhaseRunning

	stage(0, "submit")
	b.Workload(1, admitted(GroupWorkload))
	b.Starts(1.1, GroupMinimum)
	b.Starts(1.2, GroupMaster)
	begins(1.5, 1, 2, 3)
	report(2, elastic, running, 15, 4)
	plan(2.5, "submit")

	stage(3, "shrink")
	taken(4, WorkloadOf(AboveMinimum(3)), AboveMinimum(3))
	taken(4.1, WorkloadOf(AboveMinimum(2)), AboveMinimum(2))
	lasts(4.4, 11, "urgent", 1)
	report(5, elastic, running, 40, 2)
	plan(6, "shrink")

	stage(6.5, "grow")
	report(8, elastic, running, 76, 2)
	begins(12, 4, 5)
	report(13, elastic, running, 112, 4)
	plan(14, "grow")

	stage(15, "evict")
	taken(18, WorkloadOf(AboveMinimum(5)), AboveMinimum(5))
	taken(18.1, WorkloadOf(AboveMinimum(4)), AboveMinimum(4))
	taken(18.2, GroupWorkload, GroupMaster, GroupMinimum)
	left := AboveMinimum(1) // its master has deleted it
	left.Phase, left.Deleting = "Running", true
	report(18.5, elastic, trainingjob.PhaseWaiting, 150, 0)
	b.Ends(18.6, left, trainingjob.ExitStopped)
	lasts(19, 30, "large", 3)
	plan(21, "evict")

	stage(21.5, "again")
	b.Workload(31, admitted(GroupWorkload))
	b.Starts(31.1, GroupMinimumAgain)
	b.Starts(31.2, GroupMasterAgain)
	begins(31.5, 8, 9, 10)
	generation = 2
	report(33, elastic, running, 19, 4)
	report(72, elastic, trainingjob.PhaseSucceeded, 600, 4)
	for _, pod := range []eventlog.Pod{GroupMasterAgain, GroupMinimumAgain, AboveMinimum(8), AboveMinimum(9), AboveMinimum(10)} {
		b.Ends(72.2, pod, 0)
	}

	stage(72.6, "finished")
	b.Workload(73, finished(admitted(GroupWorkload)))
	plan(74, "finished")
	stage(74.5, "destroy")
	b.Add(76, eventlog.Event{Leftovers: &eventlog.Leftovers{}})
	stage(76.5, "compare")
	b.Add(100, eventlog.Event{Result: &eventlog.Result{Job: elastic, SHA256: "60c00027e54b", UndisturbedSHA256: "60c00027e54b"}})
	slices.SortStableFunc(b.Events, func(a, b eventlog.Event) int { return a.Time.Compare(b.Time) })
	return b.Events
}
