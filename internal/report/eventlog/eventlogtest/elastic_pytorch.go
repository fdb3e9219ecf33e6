package eventlogtest

import (
	"slices"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

// PyTorchBurst is a worker above the minimum of one of the jobs of the elastic-pytorch scenario, "loop" and "ddp".
func PyTorchBurst(job string, id int) eventlog.Pod {
	return eventlog.Pod{Name: trainingjob.WorkerName(job, id), Job: job, Role: "worker", Node: "node-2"}
}

// PyTorchMinimum is the worker of the minimum of one of them.
func PyTorchMinimum(job string) eventlog.Pod {
	return eventlog.Pod{Name: trainingjob.MinJobName(job) + "-0-x2v9k", Job: job, Role: "worker", Node: "node-3"}
}

// ElasticPyTorch is the scenario of two PyTorch jobs that shrink for an urgent task, as it should go.
func ElasticPyTorch() []eventlog.Event {
	b := New()
	stage := func(second float64, name string) {
		b.Add(second, eventlog.Event{Stage: &eventlog.Stage{Name: name}})
	}
	plan := func(second float64, after string) {
		b.Add(second, eventlog.Event{Plan: &eventlog.Plan{After: after}})
	}
	admitted := func(w eventlog.Workload) eventlog.Workload {
		w.ReservedIn, w.Admitted = "research", true
		return w
	}
	finished := func(second float64, w eventlog.Workload) {
		w = admitted(w)
		w.Finished = true
		b.Workload(second, w)
	}
	jobs := []string{"loop", "ddp"}
	master := func(job string) eventlog.Pod {
		return eventlog.Pod{Name: job + "-7lpcb", Job: job, Role: "master", Node: "node-1"}
	}
	group := func(job string) eventlog.Workload {
		return eventlog.Workload{
			Name: trainingjob.MinJobName(job) + "-87932864", UID: "uid-group-" + job, Queue: "research-queue", PriorityClass: "minimum", Priority: 100,
			Owners: []eventlog.Owner{{Kind: "Pod", Name: master(job).Name}, {Kind: "Pod", Name: PyTorchMinimum(job).Name}},
		}
	}
	burst := func(second float64, job string, ids ...int) {
		for _, id := range ids {
			b.Workload(second, admitted(WorkloadOf(PyTorchBurst(job, id))))
			b.Starts(second+0.1, PyTorchBurst(job, id))
		}
	}
	steps := map[string]int64{"loop": 200}
	report := func(second float64, job string, phase trainingjob.Phase, done int64, workers int) {
		status := trainingjob.Status{Phase: phase, Generation: 1, StepsDone: min(done, steps[job]), StepsTotal: steps[job], WorkersRunning: workers}
		if second > 9 {
			status.Preemptions = 2
		}
		if steps[job] == 0 {
			status.Starts = 1 + done/100
		}
		b.Job(second, job, status)
	}
	const running = trainingjob.PhaseRunning

	stage(0, "submit")
	for _, job := range jobs {
		b.Workload(1, admitted(group(job)))
		b.Starts(1.1, PyTorchMinimum(job))
		b.Starts(1.2, master(job))
		burst(1.5, job, 1, 2)
		report(4, job, running, 10, 3)
	}
	plan(4.5, "submit")

	stage(6, "forecast")
	b.Add(7, eventlog.Event{Forecast: &eventlog.Forecast{
		Before: "shrink", Text: "urgent will preempt\n" +
			"evicts  workload default/pod-loop-worker-2-b47a9 (priority 10): job loop continues with 1 of 3 workers\n" +
			"evicts  workload default/pod-loop-worker-1-6e98a (priority 10): job loop continues with 1 of 3 workers\n" +
			"evicts  workload default/pod-ddp-worker-2-a34f9 (priority 10): job ddp continues with 1 of 3 workers\n" +
			"evicts  workload default/pod-ddp-worker-1-0b88d (priority 10): job ddp continues with 1 of 3 workers",
	}})

	stage(8, "shrink")
	for _, job := range jobs {
		for _, id := range []int{2, 1} {
			w := admitted(WorkloadOf(PyTorchBurst(job, id)))
			w.Evicted, w.Preempted, w.Cause = eventlog.EvictedByPreemption, "InClusterQueue", preemptedFor
			b.Workload(9, w)
			pod := PyTorchBurst(job, id)
			pod.Phase = "Running"
			b.Ends(9.5, pod, trainingjob.ExitStopped)
			w.ReservedIn, w.Admitted = "", false
			b.Workload(9.6, w)
		}
		report(12, job, running, 110, 1)
	}
	urgent := eventlog.Pod{Name: "urgent-0-4xk2p", Job: "urgent", Role: "task", Node: "node-2"}
	task := eventlog.Workload{
		Name: "job-urgent-7f1c2", UID: "uid-job-urgent", Owners: []eventlog.Owner{{Kind: "Job", Name: "urgent"}},
		Queue: "research-queue", PriorityClass: "urgent", Priority: 1000,
	}
	b.Workload(10, admitted(task))
	b.Starts(10.1, urgent)
	plan(13, "shrink")

	stage(14, "grow")
	urgent.Phase = "Running"
	b.Ends(21, urgent, 0)
	finished(21.1, task)
	for _, job := range jobs {
		burst(22, job, 3, 4)
		report(26, job, running, 120, 3)
	}
	plan(27, "grow")
	for _, job := range jobs {
		report(60, job, trainingjob.PhaseSucceeded, 200, 3)
		for _, pod := range []eventlog.Pod{master(job), PyTorchMinimum(job), PyTorchBurst(job, 3), PyTorchBurst(job, 4)} {
			pod.Phase = "Running"
			b.Ends(60.5, pod, 0)
		}
		finished(61, group(job))
	}

	stage(62, "finished")
	plan(63, "finished")
	stage(64, "destroy")
	b.Add(65, eventlog.Event{Leftovers: &eventlog.Leftovers{}})
	stage(66, "compare")
	b.Add(70, eventlog.Event{Script: &eventlog.ScriptResult{
		Job: "loop", Weights: []float64{0, 1}, Undisturbed: []float64{0, 1.00001}, Uses: slices.Repeat([]float64{20}, 320), Epochs: 20,
	}})
	b.Add(74, eventlog.Event{Script: &eventlog.ScriptResult{
		Job: "ddp", Weights: []float64{2, 3}, Undisturbed: []float64{2, 3}, Epochs: 20,
		Starts: []eventlog.ScriptStart{{Ranks: 3}, {Ranks: 1, Records: 960}, {Ranks: 2, Records: 1920}, {Ranks: 3, Records: 1968}},
	}})
	slices.SortStableFunc(b.Events, func(a, b eventlog.Event) int { return a.Time.Compare(b.Time) })
	return b.Events
}
