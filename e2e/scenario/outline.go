package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/wording"
)

// Outline is the part of a run that must be the same on every cluster: per object the sequence of its states, by role
// and not by name ("a worker of low-prio-job"), the number of such objects, the order of the scenario's moments, and
// the results of plans, destroy and model comparisons. Two backends agree on a scenario when their outlines are equal.
//
// The outline leaves out what may differ between two correct runs:
//   - times, the names of pods and nodes, and the node of a pod: these are random or measured. Where Kueue places pods by a
//     topology, the outline contains the domain above the node;
//   - a master's intermediate reports (steps, losses, workers, short phases): reports are samples, and only the newest one
//     is kept. The outline contains the phases in which a job can remain, without the Waiting before it first runs and
//     without that for workers which sent nothing for a second, because the machine is too busy, and then come back;
//   - the time that a pod is unschedulable while other pods terminate: whether the scheduler tries before or after they have
//     ended is a race, and the duration depends on the node. Whether a pod is unschedulable at all is among the moments;
//   - pods that never ran: how often a master or a Job retries depends on back-off;
//   - the exit of a pod whose object was removed at once, which cannot be observed, and the exit code of a user's command
//     that was terminated, which depends on the command and its shell;
//   - the workloads of single pods: the states of their pods show whether Kueue preempted them;
//   - an eviction for a failed node, if Kueue admits the workload again: when it has found another node, and an update of the
//     workload arrives before it has written so (Kueue 0.19), it looks once more, finds the workload's own pods there and evicts
//     it. The pods show where the workload then runs;
//   - the pods that terraform destroy ends; the outline only shows that it leaves nothing.
func (s Scenario) Outline(events []eventlog.Event) string {
	h := eventlog.Replay(events)
	var out strings.Builder
	section := func(title string, lines []string) {
		if len(lines) > 0 {
			fmt.Fprintf(&out, "%s\n", title)
		}
		for _, line := range lines {
			fmt.Fprintf(&out, "  %s\n", line)
		}
	}
	section("pods", outlinePods(h))
	section("workloads", outlineWorkloads(h))
	section("jobs", outlineJobs(h))
	for _, chain := range s.order {
		section("order", chain.outline(h))
	}
	section("plans", outlinePlans(h))
	section("models", outlineModels(h))
	section("scripts", outlineScripts(h))
	section("left", outlineLeft(h))
	return out.String()
}

// counted are the distinct texts with the number of their occurrences, sorted.
func counted(texts []string) []string {
	numbers := map[string]int{}
	for _, text := range texts {
		numbers[text]++
	}
	var lines []string
	for _, text := range slices.Sorted(maps.Keys(numbers)) {
		lines = append(lines, fmt.Sprintf("%d × %s", numbers[text], text))
	}
	return lines
}

// destruction is when terraform destroy started; the log's end if it did not.
func destruction(h *eventlog.History) time.Time {
	from, _ := stageSpan(h, StageDestroy)
	return from
}

func outlinePods(h *eventlog.History) []string {
	var texts []string
	for _, pod := range h.Pods {
		if !pod.Running.IsZero() {
			texts = append(texts, describePod(pod)+": "+strings.Join(podStates(h, pod), ", "))
		}
	}
	return counted(texts)
}

// describePod describes a pod by its role.
func describePod(pod *eventlog.PodHistory) string {
	role := pod.Role
	if role == taskRole {
		return "task " + pod.Job
	}
	if strings.HasPrefix(pod.Name, trainingjob.MinJobName(pod.Job)+"-") {
		role = "minimum worker"
	}
	return fmt.Sprintf("a %s of %s", role, pod.Job)
}

func podStates(h *eventlog.History, pod *eventlog.PodHistory) []string {
	var states []string
	if waitedForCapacity(h, pod) {
		states = append(states, "is unschedulable")
	}
	states = append(states, "runs"+placeOf(h, pod))
	if pod.Ended.IsZero() || pod.Phase != "Succeeded" && pod.Ended.After(destruction(h)) {
		return states
	}
	taken, seen := terminationCause(h, pod)
	if taken != "" {
		states = append(states, taken)
	}
	switch {
	case !seen || taken != "" && pod.Role == taskRole:
	case pod.ExitCode == nil:
		states = append(states, "is removed")
	case *pod.ExitCode == 0:
		states = append(states, "completes")
	default:
		states = append(states, fmt.Sprintf("ends with exit code %d", *pod.ExitCode))
	}
	return states
}

// placeOf is the narrowest domain of a topology above the host that a pod runs in, from the widest; "" without topologies.
func placeOf(h *eventlog.History, pod *eventlog.PodHistory) string {
	var names []string
	for _, node := range h.Nodes {
		if node.Name == pod.Node {
			for _, domain := range node.Domains {
				names = append(names, domain.Name)
			}
		}
	}
	if len(names) == 0 {
		return ""
	}
	return " in " + strings.Join(names, ", ")
}

// terminationCause returns what ended a pod that did not end by itself, and whether its exit can be observed.
func terminationCause(h *eventlog.History, pod *eventlog.PodHistory) (taken string, seen bool) {
	for _, fault := range h.Faults {
		switch {
		case fault.Target != pod.Name:
		case fault.Kind == eventlog.PodDeleted:
			return "is deleted", true
		case fault.Kind == eventlog.PodKilled:
			return "is killed", false
		}
	}
	switch {
	case pod.Disruption == eventlog.PreemptionByScheduler:
		return "is preempted by the scheduler", true
	case pod.Disruption == eventlog.PreemptionByQueue:
		return "is preempted by Kueue", true
	case !pod.Deleting.IsZero() && pod.Phase != "Succeeded" && pod.Deleting.Before(destruction(h)):
		return "is deleted by its owner", true
	}
	return "", true
}

// minPendingTime is how long a pod must have been unschedulable, while no other pod terminated, to appear as such in
// the outline. It is longer than the scheduler takes to retry.
const minPendingTime = 2 * time.Second

// waitedForCapacity reports whether a pod was unschedulable for minPendingTime while no other pod terminated.
func waitedForCapacity(h *eventlog.History, pod *eventlog.PodHistory) bool {
	if pod.Unschedulable.IsZero() {
		return false
	}
	type span struct{ from, to time.Time }
	var stopping []span
	for _, other := range h.Pods {
		from := earliest(other.Disrupted, other.Deleting)
		if other != pod && !from.IsZero() {
			stopping = append(stopping, span{from, other.EndedBy(h.End)})
		}
	}
	slices.SortFunc(stopping, func(a, b span) int { return a.from.Compare(b.from) })
	until := pod.EndedBy(h.End)
	if !pod.Bound.IsZero() {
		until = pod.Bound
	}
	pending, at := time.Duration(0), pod.Unschedulable
	for _, s := range append(stopping, span{from: until, to: until}) {
		if s.from.After(until) {
			s.from = until
		}
		if s.from.After(at) {
			pending += s.from.Sub(at)
		}
		if s.to.After(at) {
			at = s.to
		}
	}
	return pending >= minPendingTime
}

// earliest is the earlier one of the two times that is not zero.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func outlineWorkloads(h *eventlog.History) []string {
	var texts []string
	for _, workload := range h.Workloads {
		if ofSinglePod(workload) {
			continue
		}
		var states []string
		intervals := slices.DeleteFunc(admissions(workload), func(interval eventlog.Interval) bool { return interval.From.After(destruction(h)) })
		for i, interval := range intervals {
			if interval.Evicted == kueue.WorkloadEvictedDueToNodeFailures && i+1 < len(intervals) {
				continue
			}
			states = append(states, "admitted")
			if interval.Evicted != "" {
				states = append(states, "evicted ("+interval.Evicted+")")
			}
		}
		if workload.Finished && workload.Ended.Before(destruction(h)) {
			states = append(states, "finished")
		}
		if len(states) == 0 {
			states = []string{"never admitted"}
		}
		text := fmt.Sprintf("%s's, priority class %s: %s", h.JobOf(workload), cmp.Or(workload.PriorityClass, "none"), strings.Join(states, ", "))
		texts = append(texts, text)
	}
	return counted(texts)
}

// lastingPhases are the phases in which a job can remain.
var lastingPhases = []trainingjob.Phase{
	trainingjob.PhaseWaiting, trainingjob.PhaseRunning, trainingjob.PhaseCannotSave, trainingjob.PhaseSucceeded, trainingjob.PhaseFailed,
}

func outlineJobs(h *eventlog.History) []string {
	var lines []string
	for _, job := range h.Jobs {
		var phases []string
		for _, point := range job.Points {
			phase := point.Status.Phase
			begun := len(phases) > 0
			switch {
			case !slices.Contains(lastingPhases, phase), !begun && phase == trainingjob.PhaseWaiting, waitsForSilentWorkers(point.Status):
			case !begun || phases[len(phases)-1] != string(phase):
				phases = append(phases, string(phase))
			}
		}
		last := job.Last().Status
		steps := "all of its steps"
		if last.Starts > 0 {
			steps = "steps of its own"
		} else if last.StepsTotal == 0 || last.StepsDone != last.StepsTotal {
			steps = "not all of its steps"
		}
		lines = append(lines, fmt.Sprintf("%s: %s; %s, under %s; the last one reports %s",
			job.Name, strings.Join(phases, ", "), steps, wording.Number(int(last.Generation), "master"), wording.Number(last.Preemptions, "preemption")))
	}
	slices.Sort(lines)
	return lines
}

// waitsForSilentWorkers reports whether a job waits for workers that stopped responding while their pods run.
func waitsForSilentWorkers(status trainingjob.Status) bool {
	silent := func(w trainingjob.WorkerStatus) bool { return strings.Contains(w.Reason, "stopped responding") }
	return status.Phase == trainingjob.PhaseWaiting && slices.ContainsFunc(status.Workers, silent)
}

func outlinePlans(h *eventlog.History) []string {
	var lines []string
	for _, plan := range h.Plans {
		lines = append(lines, fmt.Sprintf("after %s: %s", plan.After, cmp.Or(strings.Join(plan.Changes, ", "), "no changes")))
	}
	return lines
}

func outlineModels(h *eventlog.History) []string {
	var lines []string
	for _, result := range h.Results {
		text := "that of an undisturbed run"
		if result.SHA256 == "" || result.SHA256 != result.UndisturbedSHA256 {
			text = "different from that of an undisturbed run"
		}
		lines = append(lines, result.Job+": "+text)
	}
	return lines
}

// outlineScripts leaves out how often a command was started: workers that come one after the other may be met by one start.
func outlineScripts(h *eventlog.History) []string {
	var lines []string
	for _, script := range h.Scripts {
		text := "the weights of an undisturbed run"
		if !closeWeights(script.Weights, script.Undisturbed) {
			text = "other weights than an undisturbed run"
		}
		if len(script.Uses) > 0 {
			text += ", " + cmp.Or(unequalUses(script), "each record used once per epoch")
		}
		lines = append(lines, script.Job+": "+text)
	}
	return lines
}

func outlineLeft(h *eventlog.History) []string {
	switch {
	case h.Leftovers == nil:
		return []string{"nothing was destroyed"}
	case len(h.Leftovers.Objects) == 0:
		return []string{"nothing"}
	}
	return h.Leftovers.Objects
}

// chain is a sequence of moments, each of which must be before the next one.
type chain []moment

// moment is something that happens once in a run.
type moment struct {
	text string
	at   func(*eventlog.History) time.Time // zero when it did not happen
}

func (c chain) outline(h *eventlog.History) []string {
	lines := make([]string, 0, len(c))
	var before time.Time
	for i, m := range c {
		at := m.at(h)
		switch {
		case at.IsZero():
			lines = append(lines, m.text+": never")
			continue
		case i == 0:
			lines = append(lines, m.text)
		case at.After(before):
			lines = append(lines, "then "+m.text)
		default:
			lines = append(lines, "but earlier "+m.text)
		}
		before = at
	}
	return lines
}
