package scenario

import (
	"fmt"
	"strings"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/wording"
)

// Tone is the meaning of a line, for whatever prints it.
type Tone int

// The tones of a line.
const (
	Plain   Tone = iota
	Heading      // a new stage
	Good         // Running, no changes, equal
	Bad          // preempted, different, not destroyed
	Waiting      // Pending
)

// Line is a line of a run's report.
type Line struct {
	At     time.Duration // since the first event of the log
	Job    string        // "" if the line is not about a job
	Object string        // a pod's short name, or ""
	Text   string
	Tone   Tone
}

// Reporter turns events into lines for a reader as they arrive. It leaves out states that are of no interest to a
// person. It has no clock and prints nothing.
type Reporter struct {
	start     time.Time
	pods      map[string]reportedPod
	workloads map[string]reportedWorkload
	jobs      map[string]reportedJob
}

// reportedPod is what was reported of a pod, and its history so far.
type reportedPod struct {
	created, pending, running, disrupted, ended bool
	history                                     eventlog.PodHistory
}

// Lines returns the lines for the next event.
func (n *Reporter) Lines(event eventlog.Event) []Line {
	if n.start.IsZero() {
		n.start, n.pods, n.workloads, n.jobs = event.Time, map[string]reportedPod{}, map[string]reportedWorkload{}, map[string]reportedJob{}
	}
	var lines []Line
	switch {
	case event.Stage != nil:
		lines = []Line{{Text: event.Stage.Text, Tone: Heading}}
	case event.Fault != nil:
		lines = []Line{faultLine(*event.Fault)}
	case event.Pod != nil:
		lines = n.podLines(event.Time, *event.Pod)
	case event.Workload != nil:
		lines = n.workloadLines(event.Time, *event.Workload)
	case event.Job != nil:
		lines = n.jobLines(event.Time, *event.Job)
	case event.Plan != nil:
		lines = []Line{{Text: "terraform plan: no changes", Tone: Good}}
		if len(event.Plan.Changes) > 0 {
			lines = []Line{{Text: "terraform plan would change " + strings.Join(event.Plan.Changes, ", "), Tone: Bad}}
		}
	case event.Forecast != nil:
		prefix := "terraform plan: "
		for line := range strings.Lines(event.Forecast.Text) {
			if text := strings.TrimSpace(line); text != "" {
				lines, prefix = append(lines, Line{Text: prefix + text}), "  "
			}
		}
	case event.Listing != nil:
		lines = []Line{{Text: fmt.Sprintf("kubectl get pods -l %s: %s", event.Listing.Selector, strings.Join(event.Listing.Pods, ", "))}}
	case event.Queried != nil:
		lines = queriedWorkloadLines(*event.Queried)
	case event.Script != nil:
		lines = []Line{scriptLine(*event.Script)}
	case event.Leftovers != nil:
		lines = []Line{{Text: "no object is left", Tone: Good}}
		if len(event.Leftovers.Objects) > 0 {
			lines = []Line{{Text: "not destroyed: " + strings.Join(event.Leftovers.Objects, ", "), Tone: Bad}}
		}
	case event.Result != nil:
		lines = []Line{n.resultLine(*event.Result)}
	}
	for i := range lines {
		lines[i].At = event.Time.Sub(n.start)
	}
	return lines
}

// scriptLine describes what a script has written.
func scriptLine(s eventlog.ScriptResult) Line {
	line := Line{Job: s.Job, Tone: Good, Text: "its weights are those of an undisturbed run, within rounding"}
	if !closeWeights(s.Weights, s.Undisturbed) {
		line.Tone, line.Text = Bad, "its weights differ from those of an undisturbed run"
	}
	switch problem := unequalUses(s); {
	case problem != "":
		line.Tone, line.Text = Bad, line.Text+"; "+problem
	case len(s.Uses) > 0:
		line.Text += fmt.Sprintf("; it has used each of %s %s", wording.Number(len(s.Uses), "record"), wording.Number(s.Epochs, "time"))
	}
	var ranks []string
	for _, start := range s.Starts {
		ranks = append(ranks, fmt.Sprint(start.Ranks))
	}
	if len(ranks) > 0 {
		line.Text += "; it was started with " + strings.Join(ranks, ", ") + " ranks"
	}
	return line
}

// faultLine describes an injected fault.
func faultLine(f eventlog.Fault) Line {
	line := Line{Tone: Bad, Text: strings.TrimSpace(string(f.Kind) + ": " + f.Target)}
	switch f.Kind {
	case eventlog.PodDeleted:
		line.Text = "kubectl delete pod " + f.Target
	case eventlog.PodKilled:
		line.Text = "kubectl delete pod " + f.Target + " --grace-period=0 --force"
	case eventlog.NodeStopped:
		line.Text = f.Target + " fails: its processes are killed, its kubelet stops reporting"
	case eventlog.NodeDeleted:
		line.Text = "kubectl delete node " + f.Target
	case eventlog.NodeStarted:
		line.Text, line.Tone = f.Target+" is started again", Good
	case eventlog.APIServerKilled:
		line.Text = "the API server is killed"
	}
	return line
}

func (n *Reporter) podLines(at time.Time, pod eventlog.Pod) []Line {
	reported := n.pods[pod.UID]
	defer func() { n.pods[pod.UID] = reported }()
	var lines []Line
	report := func(done *bool, happened bool, tone Tone, format string, args ...any) {
		if *done || !happened {
			return
		}
		*done = true
		lines = append(lines, Line{
			Job: pod.Job, Object: wording.Pod(pod.Job, pod.Role, pod.Name), Text: fmt.Sprintf(format, args...), Tone: tone,
		})
	}
	over := pod.Phase == "Succeeded" || pod.Phase == "Failed" || pod.Deleted

	report(&reported.created, pod.Phase == "Pending" && pod.Unschedulable == "", Plain, "Pending")
	setFirst(&reported.history.Created, at, true)
	setFirst(&reported.history.Unschedulable, at, pod.Unschedulable != "")
	setFirst(&reported.history.Bound, at, pod.Node != "")
	report(&reported.pending, pod.Unschedulable != "" && pod.Node == "", Waiting, "Pending: %s", firstSentence(pod.Unschedulable))
	place := "Running on " + pod.Node
	if wait, waited := reported.history.Waited(at); waited {
		place += ", after waiting " + wording.Duration(wait)
	}
	report(&reported.running, pod.Phase == "Running", Good, "%s", place)
	report(&reported.disrupted, pod.Disruption == eventlog.PreemptionByScheduler, Bad, "preempted: %s", pod.Cause)
	report(&reported.disrupted, pod.Disruption != "", Bad, "disrupted, %s: %s", pod.Disruption, pod.Cause)
	switch {
	case pod.ExitCode != nil && *pod.ExitCode == 0:
		report(&reported.ended, over, Plain, "completed")
	case pod.ExitCode != nil:
		report(&reported.ended, over, Plain, "ended with exit code %d", *pod.ExitCode)
	default:
		report(&reported.ended, over, Plain, "removed")
	}
	return lines
}

// setFirst notes when something was seen first.
func setFirst(first *time.Time, at time.Time, now bool) {
	if now && first.IsZero() {
		*first = at
	}
}

// reportedWorkload is what was reported of a workload since it was last admitted or evicted.
type reportedWorkload struct {
	waiting, admitted, evicted, finished bool
	waitingSince                         time.Time
}

func (n *Reporter) workloadLines(at time.Time, workload eventlog.Workload) []Line {
	reported := n.workloads[workload.UID]
	defer func() { n.workloads[workload.UID] = reported }()
	var lines []Line
	report := func(tone Tone, format string, args ...any) {
		lines = append(lines, Line{Job: workload.Title(), Object: "workload", Text: fmt.Sprintf(format, args...), Tone: tone})
	}
	if reported.waitingSince.IsZero() && !workload.Admitted {
		reported.waitingSince = at
	}
	if workload.Evicted != "" && !reported.evicted {
		reported = reportedWorkload{evicted: true}
		report(Bad, "evicted, %s: %s", workload.Evicted, workload.Cause)
	}
	switch {
	case workload.Finished:
		if !reported.finished {
			reported.finished = true
			report(Plain, "finished")
		}
	case workload.Admitted && workload.Evicted == "" && !reported.admitted:
		text := "admitted to " + workload.ReservedIn
		if waited := at.Sub(reported.waitingSince); !reported.waitingSince.IsZero() && waited > 0 {
			text += ", after waiting " + wording.Duration(waited)
		}
		reported = reportedWorkload{admitted: true}
		report(Good, "%s", text)
	case !workload.Admitted && workload.Waits != "" && !reported.waiting:
		reported.waiting = true
		if reported.waitingSince.IsZero() {
			reported.waitingSince = at
		}
		report(Waiting, "pending in %s: %s", workload.Queue, workload.Waits)
	}
	return lines
}

// queriedWorkloadLines describes a result of data.elastic_workloads.
func queriedWorkloadLines(queried eventlog.QueriedWorkloads) []Line {
	lines := make([]Line, 0, len(queried.Workloads))
	for _, workload := range queried.Workloads {
		text := "data.elastic_workloads: " + workload.Phase
		if workload.Reason != "" {
			text += ": " + workload.Reason
		}
		lines = append(lines, Line{Job: workload.Owner, Text: text})
	}
	return lines
}

// firstSentence returns the scheduler's reason without its further sentences about preemption and resource claims.
func firstSentence(text string) string {
	if sentence, _, more := strings.Cut(text, ". "); more {
		return sentence + "."
	}
	return text
}

// stepsEvery is the interval of a job's progress lines while nothing else about it changes.
const stepsEvery = 10 * time.Second

// reportedJob is what was reported of a job.
type reportedJob struct {
	phase            trainingjob.Phase
	at               time.Time // the time of its last line
	running, pending int       // workers
	maxWorkers       int       // the most workers it has trained with
	shrunk           bool      // it has fewer than maxWorkers
	finishedSince    string    // the job that succeeded most recently since it shrank
}

// jobLines describes a job's phases, every change of its workers, and its steps now and then.
func (n *Reporter) jobLines(at time.Time, job eventlog.Job) []Line {
	reported, status := n.jobs[job.Name], job.Status
	changed := reported.phase != status.Phase
	resized := reported.running != status.WorkersRunning || reported.pending != status.WorkersPending
	var lines []Line
	switch {
	case status.WorkersRunning < reported.maxWorkers && !reported.shrunk:
		reported.shrunk, reported.finishedSince = true, ""
	case status.WorkersRunning >= reported.maxWorkers && reported.shrunk:
		reported.shrunk = false
		lines = append(lines, grownBackLine(job.Name, status.WorkersRunning, reported.finishedSince))
	}
	reported.phase, reported.running, reported.pending = status.Phase, status.WorkersRunning, status.WorkersPending
	reported.maxWorkers = max(reported.maxWorkers, status.WorkersRunning)
	if changed && status.Phase == trainingjob.PhaseSucceeded {
		n.noteFinished(job.Name)
	}
	if changed || status.Phase == trainingjob.PhaseRunning && (resized || at.Sub(reported.at) >= stepsEvery) {
		reported.at = at
		lines = append(lines, jobLine(job, changed))
	}
	n.jobs[job.Name] = reported
	return lines
}

// noteFinished records for the jobs that have shrunk that another job has finished.
func (n *Reporter) noteFinished(done string) {
	for name, reported := range n.jobs {
		if name != done {
			reported.finishedSince = done
			n.jobs[name] = reported
		}
	}
}

// grownBackLine reports that a job trains with as many workers again as before it shrank.
func grownBackLine(job string, workers int, finished string) Line {
	text := fmt.Sprintf("%s is back to %s.", job, wording.Number(workers, "worker"))
	if finished != "" {
		text = fmt.Sprintf("%s has finished: %s grows back to %s.", finished, job, wording.Number(workers, "worker"))
	}
	return Line{Text: text, Tone: Heading}
}

// jobLine describes a master's report of its job.
func jobLine(job eventlog.Job, changed bool) Line {
	status := job.Status
	parts := []string{}
	if changed {
		parts = append(parts, string(status.Phase))
	}
	if status.StepsDone > 0 {
		parts = append(parts, fmt.Sprintf("step %s of %s", wording.Count(status.StepsDone), wording.Count(status.StepsTotal)))
	}
	if status.Loss != nil {
		parts = append(parts, "loss "+wording.Loss(*status.Loss))
	}
	// While training, it is the accuracy of some twenty records, which is too few to mean anything.
	if accuracy, ok := status.Metrics[eventlog.AccuracyMetric]; ok && status.Phase == trainingjob.PhaseSucceeded {
		parts = append(parts, "accuracy "+wording.Percent(accuracy))
	}
	if status.Phase == trainingjob.PhaseRunning {
		workers := wording.Number(status.WorkersRunning, "worker")
		if status.WorkersPending > 0 {
			workers += fmt.Sprintf(", %d pending", status.WorkersPending)
		}
		parts = append(parts, workers)
	}
	if status.Message != "" {
		parts = append(parts, status.Message)
	}
	line := Line{Job: job.Name, Text: strings.Join(parts, " · ")}
	switch status.Phase {
	case trainingjob.PhaseSucceeded:
		line.Tone = Good
	case trainingjob.PhaseFailed, trainingjob.PhaseCannotSave:
		line.Tone = Bad
	case trainingjob.PhaseWaiting:
		line.Tone = Waiting
	}
	return line
}

func (n *Reporter) resultLine(result eventlog.Result) Line {
	line := Line{Job: result.Job, Tone: Good, Text: fmt.Sprintf("its model is identical to that of the undisturbed run: SHA-256 %s",
		wording.Hash(result.SHA256))}
	if result.SHA256 != result.UndisturbedSHA256 {
		line.Tone = Bad
		line.Text = fmt.Sprintf("its model %s differs from that of the undisturbed run %s", wording.Hash(result.SHA256), wording.Hash(result.UndisturbedSHA256))
	}
	return line
}
