package scenario

import (
	"fmt"
	"strings"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

// QueuePrioritiesAssertions are the assertions of the queue-priorities scenario.
func QueuePrioritiesAssertions() Assertions {
	return Assertions{
		{"the low task is admitted and runs", lowTaskRuns},
		{"the plan of the high task says that it evicts the low one", forecastNamesLowTask},
		{"the high task is admitted only when the low one has been evicted, for reason Preempted", highTaskEvictsLow},
		{"the low task's pod is preempted, and no other", onlyLowTasksPodIsPreempted},
		{"data.elastic_workloads shows both tasks, and why the low one waits", dataSourceListsBothTasks},
		{"the low task waits in the queue until the high one has finished", lowTaskWaits},
		{"the low task is admitted again as the same workload and runs, without any user action", lowTaskReturns},
		{
			"terraform plan is empty after every apply, while the low task waits, and when it runs again",
			plansAreEmptyAfter(StageQueues, StageSubmitLow, StageSubmitHigh, StageReturn),
		},
		{"terraform destroy leaves nothing", nothingIsLeft},
	}
}

// taskOf is the only workload of a task.
func taskOf(h *eventlog.History, task string) (workload *eventlog.WorkloadHistory, problem string) {
	workloads := h.WorkloadsOf(task)
	if len(workloads) != 1 {
		return nil, fmt.Sprintf("task %s had %d workloads", task, len(workloads))
	}
	return workloads[0], ""
}

// bothTasks are the workloads of the scenario's two tasks.
func bothTasks(h *eventlog.History) (low, high *eventlog.WorkloadHistory, problem string) {
	low, problem = taskOf(h, LowTask)
	if problem == "" {
		high, problem = taskOf(h, HighTask)
	}
	return low, high, problem
}

// admissions are the intervals during which a workload was admitted.
func admissions(w *eventlog.WorkloadHistory) []eventlog.Interval {
	var admitted []eventlog.Interval
	for _, interval := range w.Intervals {
		if interval.Admitted {
			admitted = append(admitted, interval)
		}
	}
	return admitted
}

func lowTaskRuns(h *eventlog.History) string {
	low, problem := taskOf(h, LowTask)
	switch {
	case problem != "":
		return problem
	case len(admissions(low)) == 0:
		return "it was never admitted"
	case len(ranPods(h, LowTask)) == 0:
		return "none of its pods ran"
	}
	return ""
}

func forecastNamesLowTask(h *eventlog.History) string {
	low, problem := taskOf(h, LowTask)
	if problem != "" {
		return problem
	}
	evictions := forecastEvictions(h, StageSubmitHigh)
	if len(evictions) != 1 || !strings.Contains(evictions[0], "/"+low.Name+" ") || !strings.Contains(evictions[0], "task "+LowTask+" is queued again") {
		return fmt.Sprintf("it names %q, and the low one's workload is %s", evictions, low.Name)
	}
	return ""
}

func highTaskEvictsLow(h *eventlog.History) string {
	low, high, problem := bothTasks(h)
	if problem != "" {
		return problem
	}
	lowAdmitted, highAdmitted := admissions(low), admissions(high)
	switch {
	case len(lowAdmitted) == 0 || len(highAdmitted) == 0:
		return "they were not both admitted"
	case lowAdmitted[0].Evicted != eventlog.EvictedByPreemption:
		return fmt.Sprintf("the low one was evicted for reason %q", lowAdmitted[0].Evicted)
	case !lowAdmitted[0].Over():
		return "the low one kept its quota"
	case high.Preempted() > 0:
		return "the high one was preempted too"
	case highAdmitted[0].From.Before(lowAdmitted[0].To):
		return fmt.Sprintf("the high one was admitted %s before the low one had lost its quota", lowAdmitted[0].To.Sub(highAdmitted[0].From).Round(time.Millisecond))
	}
	return ""
}

func onlyLowTasksPodIsPreempted(h *eventlog.History) string {
	var taken []*eventlog.PodHistory
	for _, pod := range h.Pods {
		if pod.Preempted() {
			taken = append(taken, pod)
		}
	}
	if len(taken) != 1 || taken[0].Job != LowTask {
		return fmt.Sprintf("preempted pods: %v", names(taken))
	}
	if taken[0].Ended.IsZero() {
		return taken[0].Name + " never ended"
	}
	return ""
}

func dataSourceListsBothTasks(h *eventlog.History) string {
	for _, answer := range h.Queried {
		if answer.After != StageSubmitHigh {
			continue
		}
		phases, reasons := map[string]string{}, map[string]string{}
		for _, workload := range answer.Workloads {
			phases[workload.Owner], reasons[workload.Owner] = workload.Phase, workload.Reason
		}
		switch {
		case phases[LowTask] == "" || phases[HighTask] == "":
			return fmt.Sprintf("it shows %v", phases)
		case phases[LowTask] == phases[HighTask]:
			return fmt.Sprintf("it reports %s for both", phases[LowTask])
		case !strings.Contains(reasons[LowTask], "nvidia.com/gpu"):
			return fmt.Sprintf("it reports %q as the reason of the low one", reasons[LowTask])
		}
		return ""
	}
	return "it was not read while the low one waited"
}

func lowTaskWaits(h *eventlog.History) string {
	low, high, problem := bothTasks(h)
	if problem != "" {
		return problem
	}
	admitted := admissions(low)
	switch {
	case !high.Finished:
		return "the high one did not finish"
	case len(admitted) > 1 && admitted[1].From.Before(high.Ended):
		return fmt.Sprintf("it was admitted again %s before the high one had finished", high.Ended.Sub(admitted[1].From).Round(time.Millisecond))
	}
	return ""
}

func lowTaskReturns(h *eventlog.History) string {
	low, problem := taskOf(h, LowTask)
	if problem != "" {
		return problem
	}
	admitted, ran := admissions(low), ranPods(h, LowTask)
	if len(admitted) != 2 || len(ran) != 2 {
		return fmt.Sprintf("it was admitted %d times, and %d pods of it ran", len(admitted), len(ran))
	}
	for _, stage := range h.Stages {
		if stage.Name != StageReturn && stage.Time.After(admitted[0].To) && stage.Time.Before(ran[1].Running) {
			return "stage " + stage.Name + " began before it ran again"
		}
	}
	return ""
}
