package scenario

import (
	"fmt"
	"strings"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/wording"
)

// Tone is how a line is meant, for whoever prints it.
type Tone int

// The tones of a narration.
const (
	Plain   Tone = iota
	Heading      // a stage of the story
	Good         // Running, no changes, equal
	Bad          // preempted, different, left behind
	Waiting      // Pending
)

// Line is something worth telling.
type Line struct {
	At   time.Duration // since the first event
	Job  string        // "" when it is not about one
	Who  string        // a pod's short name, or ""
	Text string
	Tone Tone
}

// Narrator tells a story's events as they come: what a person would want to know, and not every state that a watch
// shows. It has no clock and prints nothing.
type Narrator struct {
	start time.Time
	pods  map[string]podSaid
	queue map[string]workloadSaid
	jobs  map[string]jobSaid
}

// podSaid is what has been told of a pod, and its times as eventlog.Life has them.
type podSaid struct {
	created, pending, running, disrupted, ended bool
	life                                        eventlog.Life
}

// Tell takes the next event and says what is new in it.
func (n *Narrator) Tell(event eventlog.Event) []Line {
	if n.start.IsZero() {
		n.start, n.pods, n.queue, n.jobs = event.Time, map[string]podSaid{}, map[string]workloadSaid{}, map[string]jobSaid{}
	}
	var lines []Line
	switch {
	case event.Stage != nil:
		lines = []Line{{Text: event.Stage.Text, Tone: Heading}}
	case event.Fault != nil:
		lines = []Line{fault(*event.Fault)}
	case event.Pod != nil:
		lines = n.pod(event.Time, *event.Pod)
	case event.Workload != nil:
		lines = n.workload(event.Time, *event.Workload)
	case event.Job != nil:
		lines = n.job(event.Time, *event.Job)
	case event.Plan != nil:
		lines = []Line{{Text: "terraform plan: no changes", Tone: Good}}
		if len(event.Plan.Changes) > 0 {
			lines = []Line{{Text: "terraform plan would change " + strings.Join(event.Plan.Changes, ", "), Tone: Bad}}
		}
	case event.Listing != nil:
		lines = []Line{{Text: fmt.Sprintf("kubectl get pods -l %s: %s", event.Listing.Selector, strings.Join(event.Listing.Pods, ", "))}}
	case event.Answer != nil:
		lines = answer(*event.Answer)
	case event.Left != nil:
		lines = []Line{{Text: "nothing is left", Tone: Good}}
		if len(event.Left.Objects) > 0 {
			lines = []Line{{Text: "left behind: " + strings.Join(event.Left.Objects, ", "), Tone: Bad}}
		}
	case event.Result != nil:
		lines = []Line{n.result(*event.Result)}
	}
	for i := range lines {
		lines[i].At = event.Time.Sub(n.start)
	}
	return lines
}

// fault tells what the story breaks, or lets come back.
func fault(f eventlog.Fault) Line {
	line := Line{Tone: Bad, Text: strings.TrimSpace(string(f.Kind) + ": " + f.Target)}
	switch f.Kind {
	case eventlog.PodDeleted:
		line.Text = "kubectl delete pod " + f.Target
	case eventlog.PodKilled:
		line.Text = "kubectl delete pod " + f.Target + " --grace-period=0 --force"
	case eventlog.NodeStopped:
		line.Text = f.Target + " dies: its processes are killed, it reports nothing any more"
	case eventlog.NodeDeleted:
		line.Text = "kubectl delete node " + f.Target
	case eventlog.NodeStarted:
		line.Text, line.Tone = f.Target+" comes back", Good
	case eventlog.APIServerKilled:
		line.Text = "the API server is killed"
	}
	return line
}

func (n *Narrator) pod(at time.Time, pod eventlog.Pod) []Line {
	said := n.pods[pod.UID]
	defer func() { n.pods[pod.UID] = said }()
	var lines []Line
	say := func(done *bool, happened bool, tone Tone, format string, args ...any) {
		if *done || !happened {
			return
		}
		*done = true
		lines = append(lines, Line{
			Job: pod.Job, Who: wording.Pod(pod.Job, pod.Role, pod.Name), Text: fmt.Sprintf(format, args...), Tone: tone,
		})
	}
	over := pod.Phase == "Succeeded" || pod.Phase == "Failed" || pod.Deleted

	say(&said.created, pod.Phase == "Pending" && pod.Unschedulable == "", Plain, "Pending")
	seen(&said.life.Created, at, true)
	seen(&said.life.Unschedulable, at, pod.Unschedulable != "")
	seen(&said.life.Bound, at, pod.Node != "")
	say(&said.pending, pod.Unschedulable != "" && pod.Node == "", Waiting, "Pending: %s", firstSentence(pod.Unschedulable))
	place := "Running on " + pod.Node
	if wait, waited := said.life.Waited(at); waited {
		place += ", after waiting " + wording.Duration(wait)
	}
	say(&said.running, pod.Phase == "Running", Good, "%s", place)
	say(&said.disrupted, pod.Disruption == eventlog.PreemptionByScheduler, Bad, "preempted: %s", pod.Cause)
	say(&said.disrupted, pod.Disruption != "", Bad, "disrupted, %s: %s", pod.Disruption, pod.Cause)
	switch {
	case pod.ExitCode != nil && *pod.ExitCode == 0:
		say(&said.ended, over, Plain, "completed")
	case pod.ExitCode != nil:
		say(&said.ended, over, Plain, "ended with exit code %d", *pod.ExitCode)
	default:
		say(&said.ended, over, Plain, "removed")
	}
	return lines
}

// seen notes when something was seen first.
func seen(first *time.Time, at time.Time, now bool) {
	if now && first.IsZero() {
		*first = at
	}
}

// workloadSaid is what has been told of a workload since it was last admitted or evicted.
type workloadSaid struct {
	waits, admitted, evicted, finished bool
	waitingSince                       time.Time
}

func (n *Narrator) workload(at time.Time, workload eventlog.Workload) []Line {
	said := n.queue[workload.UID]
	defer func() { n.queue[workload.UID] = said }()
	var lines []Line
	say := func(tone Tone, format string, args ...any) {
		lines = append(lines, Line{Job: workload.Title(), Who: "workload", Text: fmt.Sprintf(format, args...), Tone: tone})
	}
	if said.waitingSince.IsZero() && !workload.Admitted {
		said.waitingSince = at
	}
	if workload.Evicted != "" && !said.evicted {
		said = workloadSaid{evicted: true}
		say(Bad, "evicted, %s: %s", workload.Evicted, workload.Cause)
	}
	switch {
	case workload.Finished:
		if !said.finished {
			said.finished = true
			say(Plain, "finished")
		}
	case workload.Admitted && workload.Evicted == "" && !said.admitted:
		text := "admitted to " + workload.ReservedIn
		if waited := at.Sub(said.waitingSince); !said.waitingSince.IsZero() && waited > 0 {
			text += ", after waiting " + wording.Duration(waited)
		}
		said = workloadSaid{admitted: true}
		say(Good, "%s", text)
	case !workload.Admitted && workload.Waits != "" && !said.waits:
		said.waits = true
		if said.waitingSince.IsZero() {
			said.waitingSince = at
		}
		say(Waiting, "waits in %s: %s", workload.Queue, workload.Waits)
	}
	return lines
}

// answer tells what data.elastic_workloads said.
func answer(answer eventlog.Answer) []Line {
	lines := make([]Line, 0, len(answer.Workloads))
	for _, workload := range answer.Workloads {
		text := "data.elastic_workloads: " + workload.Phase
		if workload.Reason != "" {
			text += ": " + workload.Reason
		}
		lines = append(lines, Line{Job: workload.Owner, Text: text})
	}
	return lines
}

// firstSentence leaves out what the scheduler says of preemption and resource claims after the reason itself.
func firstSentence(text string) string {
	if sentence, _, more := strings.Cut(text, ". "); more {
		return sentence + "."
	}
	return text
}

// stepsEvery is how often a job's steps are told while nothing else about it changes.
const stepsEvery = 10 * time.Second

// jobSaid is what has been told of a job.
type jobSaid struct {
	phase            trainingjob.Phase
	at               time.Time // of its last line
	running, pending int       // workers
	most             int       // workers it has trained with
	shrunk           bool      // it has fewer now, or had until it is told that it has grown back
	madeRoom         string    // the job that succeeded last since it shrank
}

// job tells a job's phases, every change of its workers, and its steps now and then.
func (n *Narrator) job(at time.Time, job eventlog.Job) []Line {
	said, status := n.jobs[job.Name], job.Status
	changed := said.phase != status.Phase
	resized := said.running != status.WorkersRunning || said.pending != status.WorkersPending
	var lines []Line
	switch {
	case status.WorkersRunning < said.most && !said.shrunk:
		said.shrunk, said.madeRoom = true, ""
	case status.WorkersRunning >= said.most && said.shrunk:
		said.shrunk = false
		lines = append(lines, grownBack(job.Name, status.WorkersRunning, said.madeRoom))
	}
	said.phase, said.running, said.pending = status.Phase, status.WorkersRunning, status.WorkersPending
	said.most = max(said.most, status.WorkersRunning)
	if changed && status.Phase == trainingjob.PhaseSucceeded {
		n.madeRoom(job.Name)
	}
	if changed || status.Phase == trainingjob.PhaseRunning && (resized || at.Sub(said.at) >= stepsEvery) {
		said.at = at
		lines = append(lines, report(job, changed))
	}
	n.jobs[job.Name] = said
	return lines
}

// madeRoom notes for the jobs that have shrunk that another one needs its room no more.
func (n *Narrator) madeRoom(done string) {
	for name, said := range n.jobs {
		if name != done {
			said.madeRoom = done
			n.jobs[name] = said
		}
	}
}

// grownBack tells that a job trains with as many workers again as before it shrank.
func grownBack(job string, workers int, madeRoom string) Line {
	text := fmt.Sprintf("%s is back to %s.", job, wording.Number(workers, "worker"))
	if madeRoom != "" {
		text = fmt.Sprintf("%s is done: %s grows back to %s.", madeRoom, job, wording.Number(workers, "worker"))
	}
	return Line{Text: text, Tone: Heading}
}

// report tells what a master says of its job.
func report(job eventlog.Job, changed bool) Line {
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
	// While training it is that of some twenty records, which tells nothing.
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

func (n *Narrator) result(result eventlog.Result) Line {
	line := Line{Job: result.Job, Tone: Good, Text: fmt.Sprintf("its model and the undisturbed one are equal, bit for bit: SHA-256 %s",
		wording.Hash(result.SHA256))}
	if result.SHA256 != result.UndisturbedSHA256 {
		line.Tone = Bad
		line.Text = fmt.Sprintf("its model %s differs from the undisturbed one %s", wording.Hash(result.SHA256), wording.Hash(result.UndisturbedSHA256))
	}
	return line
}
