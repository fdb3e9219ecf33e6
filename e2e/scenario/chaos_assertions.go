package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

// ChaosAssertions are the assertions of the chaos scenario.
func ChaosAssertions() Assertions {
	return Assertions{
		{"three workers train, each on a node of its own", workersAreSpread},
		{"a deleted worker exits gracefully, with exit code 143", deletedPodsExitGracefully("worker")},
		{"every lost worker is replaced once, under a new name", lostWorkersAreReplaced},
		{"without the node the job continues with two workers", continuesWithoutNode},
		{"the replacement of the failed node's worker is Pending until the node is back, and runs there", replacementWaitsForNode},
		{"a deleted master exits gracefully, with exit code 143", deletedPodsExitGracefully("master")},
		{"exactly one other master replaces it, and the workers keep running", masterIsReplaced},
		{"no pod ends and no other master takes over while the API server is down", nothingEndsWithoutAPIServer},
		{"the job reaches Succeeded with all its steps done, without a preemption", chaosSucceeds},
		{"every step runs once: the count never falls under one master, and no gradient is counted twice", stepsAreDoneOnce},
		{"the model is that of an undisturbed run", modelIsUndisturbed(ChaosJob)},
		{
			"terraform plan is empty after every stage",
			plansAreEmptyAfter(StageSubmit, StageLoseWorkers, StageLoseNode, StageLoseMaster, StageNodeReturns, StageLoseAPIServer, StageFinished),
		},
		{"terraform destroy leaves nothing", nothingIsLeft},
	}
}

func workersAreSpread(h *eventlog.History) string {
	_, until := stageSpan(h, StageSubmit)
	var nodes []string
	for _, worker := range h.PodsOf(ChaosJob, "worker") {
		if !worker.Running.IsZero() && worker.Running.Before(until) {
			nodes = append(nodes, worker.Node)
		}
	}
	slices.Sort(nodes)
	if len(nodes) != chaosWorkers || len(slices.Compact(slices.Clone(nodes))) != chaosWorkers {
		return fmt.Sprintf("workers ran on %v", nodes)
	}
	return ""
}

// faultsOf are the faults of the given kinds, in order.
func faultsOf(h *eventlog.History, kinds ...eventlog.FaultKind) []eventlog.FaultAt {
	return slices.DeleteFunc(slices.Clone(h.Faults), func(f eventlog.FaultAt) bool { return !slices.Contains(kinds, f.Kind) })
}

// podNamed is the job's pod with a name.
func podNamed(h *eventlog.History, name string) *eventlog.PodHistory {
	for _, pod := range h.Pods {
		if pod.Job == ChaosJob && pod.Name == name {
			return pod
		}
	}
	return nil
}

func deletedPodsExitGracefully(role string) func(*eventlog.History) string {
	return func(h *eventlog.History) string {
		deleted := 0
		for _, fault := range faultsOf(h, eventlog.PodDeleted) {
			pod := podNamed(h, fault.Target)
			switch {
			case pod == nil:
				return fault.Target + " was never observed"
			case pod.Role != role:
				continue
			case pod.Ended.IsZero():
				return fault.Target + " did not end"
			case pod.ExitCode == nil:
				return fault.Target + " ended without an exit code"
			case *pod.ExitCode != trainingjob.ExitStopped:
				return fmt.Sprintf("%s ended with exit code %d", fault.Target, *pod.ExitCode)
			}
			deleted++
		}
		if deleted != 1 {
			return fmt.Sprintf("%d pods with role %s were deleted", deleted, role)
		}
		return ""
	}
}

func lostWorkersAreReplaced(h *eventlog.History) string {
	workers := h.PodsOf(ChaosJob, "worker")
	lost := map[string]bool{}
	for _, fault := range faultsOf(h, eventlog.PodDeleted, eventlog.PodKilled) {
		if pod := podNamed(h, fault.Target); pod != nil && pod.Role == "worker" {
			lost[fault.Target] = true
		}
	}
	distinct := map[string]bool{}
	for _, worker := range workers {
		distinct[worker.Name] = true
		if worker.Running.IsZero() {
			return worker.Name + " never ran"
		}
	}
	const losses = 3 // two by their pods, one with its node
	if len(lost) != losses || len(distinct) != len(workers) || len(workers) != chaosWorkers+losses {
		return fmt.Sprintf("of %v the scenario removed %d", names(workers), len(lost))
	}
	return ""
}

// faultTime is when the one fault of a kind happened; zero unless there was exactly one.
func faultTime(h *eventlog.History, kind eventlog.FaultKind) time.Time {
	if faults := faultsOf(h, kind); len(faults) == 1 {
		return faults[0].Time
	}
	return time.Time{}
}

func continuesWithoutNode(h *eventlog.History) string {
	from, to := faultTime(h, eventlog.NodeStopped), faultTime(h, eventlog.NodeStarted)
	if from.IsZero() || to.IsZero() {
		return "no node was stopped and started"
	}
	var first, last *trainingjob.Status // under one master
	for i, point := range h.Job(ChaosJob).Points {
		if status := &h.Job(ChaosJob).Points[i].Status; point.Time.After(from) && point.Time.Before(to) && status.WorkersRunning == chaosWorkersLeft {
			if first == nil || first.Generation != status.Generation {
				first = status
			}
			if last = status; last.StepsDone > first.StepsDone {
				return ""
			}
		}
	}
	if first == nil {
		return "no report counts two workers meanwhile"
	}
	return fmt.Sprintf("it made no progress at step %d", last.StepsDone)
}

func replacementWaitsForNode(h *eventlog.History) string {
	stopped, back := faultsOf(h, eventlog.NodeStopped), faultTime(h, eventlog.NodeStarted)
	if len(stopped) != 1 || back.IsZero() {
		return "no node was stopped and started"
	}
	for _, worker := range h.PodsOf(ChaosJob, "worker") {
		if worker.Created.Before(stopped[0].Time) {
			continue
		}
		switch {
		case worker.Unschedulable.IsZero():
			return worker.Name + " was never reported unschedulable"
		case worker.Running.IsZero():
			return worker.Name + " never ran"
		case worker.Running.Before(back):
			return fmt.Sprintf("%s ran %s before the node was back", worker.Name, back.Sub(worker.Running).Round(time.Millisecond))
		case worker.Node != stopped[0].Target:
			return fmt.Sprintf("%s ran on %s, not on %s", worker.Name, worker.Node, stopped[0].Target)
		}
		return ""
	}
	return "no worker was created after the node failed"
}

func masterIsReplaced(h *eventlog.History) string {
	masters := h.PodsOf(ChaosJob, "master")
	if len(masters) != 2 {
		return fmt.Sprintf("there were %d masters: %v", len(masters), names(masters))
	}
	first, second := masters[0], masters[1]
	if first.Ended.IsZero() || second.Running.Before(first.Ended) {
		return fmt.Sprintf("%s and %s ran at the same time", first.Name, second.Name)
	}
	from, to := stageSpan(h, StageLoseMaster)
	for _, worker := range h.PodsOf(ChaosJob, "worker") {
		if worker.Ended.After(from) && worker.Ended.Before(to) {
			return worker.Name + " ended with the master"
		}
	}
	if got, want := h.Job(ChaosJob).Last().Status.Generation, int64(2); got != want {
		return fmt.Sprintf("the last report is of generation %d", got)
	}
	return ""
}

func nothingEndsWithoutAPIServer(h *eventlog.History) string {
	killed := faultTime(h, eventlog.APIServerKilled)
	if killed.IsZero() {
		return "it was not killed"
	}
	before := int64(0)
	for _, point := range h.Job(ChaosJob).Points {
		if point.Time.Before(killed) {
			before = point.Status.Generation
		} else if point.Status.Generation != before {
			return fmt.Sprintf("generation %d took over from %d", point.Status.Generation, before)
		}
	}
	for _, pod := range h.Pods {
		// A pod that completes has finished the job. It may be observed before the job's last report.
		if pod.Job == ChaosJob && (pod.Created.After(killed) || pod.Ended.After(killed) && pod.Phase != "Succeeded") {
			return pod.Name + " was created or ended"
		}
	}
	return ""
}

func chaosSucceeds(h *eventlog.History) string {
	status := h.Job(ChaosJob).Last().Status
	switch {
	case status.Phase != trainingjob.PhaseSucceeded:
		return strings.TrimSpace(fmt.Sprintf("it is %q %s", status.Phase, status.Message))
	case status.StepsTotal == 0 || status.StepsDone != status.StepsTotal:
		return fmt.Sprintf("it did %d of %d steps", status.StepsDone, status.StepsTotal)
	case status.Preemptions != 0:
		return fmt.Sprintf("its status counts %d preemptions", status.Preemptions)
	}
	return ""
}

// stepsAreDoneOnce checks exactly-once as far as status reports show it. The counting model in the trainer's own tests,
// and the model's hash here, check the rest.
func stepsAreDoneOnce(h *eventlog.History) string {
	var generation, step, total int64
	taken := map[string]int64{} // by worker, the most that a report of this generation counts
	for _, point := range h.Job(ChaosJob).Points {
		status := point.Status
		if status.Generation != generation {
			if status.Generation < generation {
				return fmt.Sprintf("generation %d reported after %d", status.Generation, generation)
			}
			generation, step, taken = status.Generation, 0, map[string]int64{}
		}
		if status.StepsDone < step {
			return fmt.Sprintf("it fell back from step %d to %d under one master", step, status.StepsDone)
		}
		if total != 0 && status.StepsTotal != 0 && status.StepsTotal != total {
			return fmt.Sprintf("its steps are %d, and were %d", status.StepsTotal, total)
		}
		step, total = status.StepsDone, max(total, status.StepsTotal)
		sum := int64(0)
		for _, worker := range status.Workers {
			taken[worker.Pod] = max(taken[worker.Pod], worker.Gradients)
		}
		for _, gradients := range taken {
			sum += gradients
		}
		if most := (step + 1) * chaosWorkers; sum > most {
			return fmt.Sprintf("%d gradients were taken for %d steps of %d", sum, step, chaosWorkers)
		}
	}
	if total == 0 {
		return "no report says how many steps there are"
	}
	return ""
}
