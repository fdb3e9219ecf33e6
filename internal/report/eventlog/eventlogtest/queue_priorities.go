package eventlogtest

import "github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"

// Objects of the queue-priorities scenario.
var (
	LowWorkload = eventlog.Workload{
		Name: "job-low-7f1c2", UID: "uid-job-low", Owners: []eventlog.Owner{{Kind: "Job", Name: "low"}},
		Queue: "user-queue", PriorityClass: "low-priority", Priority: 100,
	}
	HighWorkload = eventlog.Workload{
		Name: "job-high-0b9e4", UID: "uid-job-high", Owners: []eventlog.Owner{{Kind: "Job", Name: "high"}},
		Queue: "user-queue", PriorityClass: "high-priority", Priority: 1000,
	}
	LowTaskPod   = eventlog.Pod{Name: "low-0-4xk2p", Job: "low", Role: "task", Node: "gpu-0"}
	LowTaskPod2  = eventlog.Pod{Name: "low-0-9q7zd", Job: "low", Role: "task", Node: "gpu-0"}
	HighTaskPod  = eventlog.Pod{Name: "high-0-m2v8c", Job: "high", Role: "task", Node: "gpu-0"}
	noQuota      = "couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu in flavor t4, 4 more needed"
	preemptedFor = "Preempted to accommodate a workload (UID: uid-high) due to prioritization in the ClusterQueue"
)

// Workload appends a state of a workload.
func (b *Builder) Workload(second float64, workload eventlog.Workload) {
	b.Add(second, eventlog.Event{Workload: &workload})
}

// QueuePriorities is the scenario of the two queued tasks as it should go.
func QueuePriorities() []eventlog.Event {
	b := New()
	b.Add(0, eventlog.Event{Node: &eventlog.Node{Name: "gpu-0", CPU: "15890m", Memory: "60Gi"}})
	stage := func(second float64, name, text string) {
		b.Add(second, eventlog.Event{Stage: &eventlog.Stage{Name: name, Text: text}})
	}
	plan := func(second float64, after string) {
		b.Add(second, eventlog.Event{Plan: &eventlog.Plan{After: after}})
	}
	admitted := func(workload eventlog.Workload) eventlog.Workload {
		workload.ReservedIn, workload.Admitted = "team", true
		return workload
	}
	waits := func(workload eventlog.Workload) eventlog.Workload {
		workload.Waits = noQuota
		return workload
	}
	answer := func(second float64, after string, workloads ...eventlog.QueriedWorkload) {
		b.Add(second, eventlog.Event{Queried: &eventlog.QueriedWorkloads{After: after, Workloads: workloads}})
	}

	stage(0.1, "queues", "terraform apply: a flavor, a queue with quota for four GPUs, two priority classes.")
	plan(2, "queues")
	stage(2.1, "submit-low", "terraform apply: task low takes all four GPUs.")
	b.Workload(3, LowWorkload)
	b.Workload(3.1, admitted(LowWorkload))
	b.Starts(3.2, LowTaskPod)
	plan(5, "submit-low")
	answer(5.5, "submit-low", eventlog.QueriedWorkload{Owner: "low", Queue: "user-queue", Phase: "admitted"})

	stage(5.6, "forecast", "terraform plan: what would task high evict, which needs the same four GPUs?")
	b.Add(5.9, eventlog.Event{Forecast: &eventlog.Forecast{
		Before: "submit-high", Text: "high will preempt\n" +
			"queue   admitted by ClusterQueue team with quota of t4\n" +
			"evicts  workload default/job-low-7f1c2 (priority 100): task low is queued again, first in line\n" +
			"starts  the pod on gpu-0 after default/low-0-4xk2p has terminated (grace period 30s)",
	}})
	stage(6, "submit-high", "terraform apply: task high.")
	b.Workload(7, HighWorkload)
	b.Workload(7.05, waits(HighWorkload))
	evicted := admitted(LowWorkload)
	evicted.Evicted, evicted.Preempted, evicted.Cause = eventlog.EvictedByPreemption, "InClusterQueue", preemptedFor
	b.Workload(7.1, evicted)
	pod := LowTaskPod
	pod.Phase, pod.Deleting = "Running", true
	b.Pod(7.15, pod)
	b.Ends(7.2, pod, 143)
	requeued := waits(LowWorkload)
	requeued.Evicted, requeued.Preempted, requeued.Cause = evicted.Evicted, evicted.Preempted, evicted.Cause
	b.Workload(7.3, requeued)
	b.Workload(7.4, admitted(HighWorkload))
	b.Starts(7.5, HighTaskPod)
	plan(9, "submit-high")
	answer(9.5, "submit-high", eventlog.QueriedWorkload{Owner: "low", Queue: "user-queue", Phase: "pending", Reason: noQuota},
		eventlog.QueriedWorkload{Owner: "high", Queue: "user-queue", Phase: "admitted"})

	stage(10, "return", "Nobody does anything: high ends after 10 s.")
	pod = HighTaskPod
	pod.Phase = "Running"
	b.Ends(17.5, pod, 0)
	finished := admitted(HighWorkload)
	finished.Finished = true
	b.Workload(17.6, finished)
	b.Workload(18.7, admitted(LowWorkload))
	b.Starts(18.8, LowTaskPod2)
	plan(20, "return")
	stage(21, "destroy", "terraform destroy.")
	b.Add(24, eventlog.Event{Leftovers: &eventlog.Leftovers{}})
	return b.Events
}
