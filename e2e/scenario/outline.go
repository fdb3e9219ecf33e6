package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/wording"
)

// Outline is what must be the same wherever the story is told: per object the sequence of its states, by role and not by
// name ("a worker of low-prio-job"), how many there were of each, the order of the moments that the story lists, and what
// plans, destruction and models came to. Two backends have told the same story when their outlines are equal.
//
// What may differ is left out, each for its reason:
//   - times, names of pods and nodes, and which node a pod was on: they are drawn by lot or measured;
//   - what a master reports on its way (steps, losses, workers, short phases): reports are samples, and only the newest
//     one is written. Of phases it tells the ones in which a job can stay, and not the Waiting before it first runs;
//   - a wait for room while other pods are stopping: whether the scheduler looks before or after they have gone is
//     chance, and how long they take is the node's affair. That somebody waits at all is among the moments;
//   - pods that never ran: how often a master, or a Job, offers one in vain is a matter of back-off;
//   - how a pod ended whose object was removed at once, and with what code a user's command ended that was asked to: the
//     one is not seen, the other is the command's affair and its shell's;
//   - the workloads of single pods: their pods tell whether the queue took them;
//   - what terraform destroy ends, besides that it leaves nothing.
func (s Story) Outline(events []eventlog.Event) string {
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
	section("left", outlineLeft(h))
	return out.String()
}

// counted are the texts with their numbers, in the order of the texts.
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

// destruction is when the story began to destroy what it had made; the log's end where it did not.
func destruction(h *eventlog.History) time.Time {
	from, _ := stageSpan(h, StageDestroy)
	return from
}

func outlinePods(h *eventlog.History) []string {
	var texts []string
	for _, life := range h.Pods {
		if !life.Running.IsZero() {
			texts = append(texts, who(life)+": "+strings.Join(podStates(h, life), ", "))
		}
	}
	return counted(texts)
}

// who is a pod by its role.
func who(life *eventlog.Life) string {
	role := life.Role
	if role == taskRole {
		return "task " + life.Job
	}
	if strings.HasPrefix(life.Name, trainingjob.FloorName(life.Job)+"-") {
		role = "floor worker"
	}
	return fmt.Sprintf("a %s of %s", role, life.Job)
}

func podStates(h *eventlog.History, life *eventlog.Life) []string {
	var states []string
	if waitsForRoom(h, life) {
		states = append(states, "waits for room")
	}
	states = append(states, "runs")
	if life.Ended.IsZero() || life.Phase != "Succeeded" && life.Ended.After(destruction(h)) {
		return states
	}
	taken, seen := takenBy(h, life)
	if taken != "" {
		states = append(states, taken)
	}
	switch {
	case !seen || taken != "" && life.Role == taskRole:
	case life.ExitCode == nil:
		states = append(states, "is gone")
	case *life.ExitCode == 0:
		states = append(states, "completes")
	default:
		states = append(states, fmt.Sprintf("ends with exit code %d", *life.ExitCode))
	}
	return states
}

// takenBy says what ended a pod that did not end by itself, and whether its end can be seen.
func takenBy(h *eventlog.History, life *eventlog.Life) (taken string, seen bool) {
	for _, fault := range h.Faults {
		switch {
		case fault.Target != life.Name:
		case fault.Kind == eventlog.PodDeleted:
			return "is deleted", true
		case fault.Kind == eventlog.PodKilled:
			return "is killed", false
		}
	}
	switch {
	case life.Disruption == eventlog.PreemptionByScheduler:
		return "is preempted by the scheduler", true
	case life.Disruption == eventlog.PreemptionByQueue:
		return "is preempted by the queue", true
	case !life.Deleting.IsZero() && life.Phase != "Succeeded" && life.Deleting.Before(destruction(h)):
		return "is asked to go", true
	}
	return "", true
}

// roomIsSought is how long a pod must have been without room, while nobody was stopping, for that to be told: longer than
// it takes the scheduler to look again.
const roomIsSought = 2 * time.Second

// waitsForRoom says whether a pod waited for room that nobody was giving up at the time.
func waitsForRoom(h *eventlog.History, life *eventlog.Life) bool {
	if life.Unschedulable.IsZero() {
		return false
	}
	type span struct{ from, to time.Time }
	var stopping []span
	for _, other := range h.Pods {
		from := earliest(other.Disrupted, other.Deleting)
		if other != life && !from.IsZero() {
			stopping = append(stopping, span{from, other.EndedBy(h.End)})
		}
	}
	slices.SortFunc(stopping, func(a, b span) int { return a.from.Compare(b.from) })
	until := life.EndedBy(h.End)
	if !life.Bound.IsZero() {
		until = life.Bound
	}
	sought, at := time.Duration(0), life.Unschedulable
	for _, s := range append(stopping, span{from: until, to: until}) {
		if s.from.After(until) {
			s.from = until
		}
		if s.from.After(at) {
			sought += s.from.Sub(at)
		}
		if s.to.After(at) {
			at = s.to
		}
	}
	return sought >= roomIsSought
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
		for _, spell := range admissions(workload) {
			if spell.From.After(destruction(h)) {
				continue
			}
			states = append(states, "admitted")
			if spell.Evicted != "" {
				states = append(states, "evicted ("+spell.Evicted+")")
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

// lastingPhases are those in which a job can stay.
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
			case !slices.Contains(lastingPhases, phase), !begun && phase == trainingjob.PhaseWaiting:
			case !begun || phases[len(phases)-1] != string(phase):
				phases = append(phases, string(phase))
			}
		}
		last := job.Last().Status
		steps := "all of its steps"
		if last.StepsTotal == 0 || last.StepsDone != last.StepsTotal {
			steps = "not all of its steps"
		}
		lines = append(lines, fmt.Sprintf("%s: %s; %s, under %s; the last one counts %s",
			job.Name, strings.Join(phases, ", "), steps, wording.Number(int(last.Generation), "master"), wording.Number(last.Preemptions, "preemption")))
	}
	slices.Sort(lines)
	return lines
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
			text = "another one than an undisturbed run's"
		}
		lines = append(lines, result.Job+": "+text)
	}
	return lines
}

func outlineLeft(h *eventlog.History) []string {
	switch {
	case h.Left == nil:
		return []string{"nothing was destroyed"}
	case len(h.Left.Objects) == 0:
		return []string{"nothing"}
	}
	return h.Left.Objects
}

// chain is a sequence of moments, each of which must be before the next one.
type chain []moment

// moment is something that happens once in a story.
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
