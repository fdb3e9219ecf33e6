package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"golang.org/x/term"

	"github.com/elastic-training/terraform-provider-elastic/e2e/scenario"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/wording"
)

// terminal prints lines, in colour if the output is a terminal.
type terminal struct {
	w      io.Writer
	colour bool
	jobs   map[string]string // the colour of each job, assigned in the order of appearance

	jobWidth, whoWidth int // of the columns of jobs and pods: that of the longest seen
}

// The columns' widths for names of the usual length, so that the first long one is all that moves them.
const (
	usualJobWidth = 14
	usualWhoWidth = 9
)

// ANSI colours that are readable on light and dark grounds.
const (
	reset, bold, dim          = "\x1b[0m", "\x1b[1m", "\x1b[2m"
	red, green, yellow        = "\x1b[31m", "\x1b[32m", "\x1b[33m"
	blue, magenta, cyanOnDark = "\x1b[34m", "\x1b[35m", "\x1b[36m"
)

var jobColours = []string{blue, yellow, magenta, cyanOnDark}

// newTerminal prints to file. NO_COLOR (any value) and TERM=dumb switch colours off, as is usual.
func newTerminal(file *os.File) *terminal {
	colour := term.IsTerminal(int(file.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return &terminal{w: file, colour: colour, jobs: map[string]string{}, jobWidth: usualJobWidth, whoWidth: usualWhoWidth}
}

func (t *terminal) paint(colour, text string) string {
	if !t.colour || colour == "" {
		return text
	}
	return colour + text + reset
}

func (t *terminal) job(name string) string {
	if _, known := t.jobs[name]; !known {
		t.jobs[name] = jobColours[len(t.jobs)%len(jobColours)]
	}
	return t.jobs[name]
}

// say prints a line that is not an event.
func (t *terminal) printf(format string, args ...any) {
	fmt.Fprintf(t.w, format+"\n", args...)
}

// line prints a line of the report: time, job, pod, text.
func (t *terminal) line(line scenario.Line) {
	at := t.paint(dim, fmt.Sprintf("%7.2f s", line.At.Seconds()))
	if line.Tone == scenario.Heading {
		fmt.Fprintf(t.w, "\n%s  %s\n", at, t.paint(bold, line.Text))
		return
	}
	text := line.Text
	switch line.Tone {
	case scenario.Good:
		text = t.paint(green, text)
	case scenario.Bad:
		text = t.paint(red, text)
	case scenario.Waiting:
		text = t.paint(yellow, text)
	}
	t.jobWidth, t.whoWidth = max(t.jobWidth, len(line.Job)), max(t.whoWidth, len(line.Object))
	job := fmt.Sprintf("%-*s", t.jobWidth, line.Job)
	if line.Job != "" {
		job = t.paint(t.job(line.Job), job)
	}
	fmt.Fprintf(t.w, "%s  %s %-*s %s\n", at, job, t.whoWidth, line.Object, text)
}

// jobTable prints the training jobs' results.
func (t *terminal) jobTable(h *eventlog.History) {
	var rows [][]string
	for _, s := range h.Summarize() {
		loss, accuracy, waited := "", "", ""
		if s.Loss != nil {
			loss = wording.Loss(*s.Loss)
		}
		if s.Accuracy != nil {
			accuracy = wording.Percent(*s.Accuracy)
		}
		if s.Waited > 0 {
			waited = wording.Duration(s.Waited)
		}
		rows = append(rows, []string{
			s.Job, string(s.Phase), wording.Count(s.StepsDone) + " of " + wording.Count(s.StepsTotal), loss, accuracy,
			fmt.Sprint(s.Preemptions), waited, wording.Duration(s.Took), wording.Hash(s.SHA256),
		})
	}
	for _, result := range h.Results {
		rows = append(rows, []string{
			result.Job + ", undisturbed", "", "", "", "", "", "",
			wording.Duration(result.UndisturbedTook), wording.Hash(result.UndisturbedSHA256),
		})
	}
	t.table([]string{"job", "phase", "steps", "loss", "accuracy", "preempted", "waited", "took", "model"}, rows)
}

// workloadTable prints how often each workload was admitted and preempted, and how long it waited.
func (t *terminal) workloadTable(h *eventlog.History) {
	var rows [][]string
	for _, w := range h.Workloads {
		admitted := 0
		for _, interval := range w.Intervals {
			if interval.Admitted {
				admitted++
			}
		}
		rows = append(rows, []string{w.Name, w.Queue, w.PriorityClass, fmt.Sprint(admitted), fmt.Sprint(w.Preempted()), wording.Duration(w.Waited(h.End))})
	}
	t.table([]string{"workload", "queue", "priority", "admitted", "preempted", "waited"}, rows)
}

// table prints rows below their titles.
func (t *terminal) table(titles []string, rows [][]string) {
	fmt.Fprintln(t.w)
	table := tabwriter.NewWriter(t.w, 0, 0, 3, ' ', 0)
	for _, row := range append([][]string{titles}, rows...) {
		fmt.Fprintln(table, "  "+strings.Join(row, "\t"))
	}
	table.Flush() //nolint:errcheck // a failed write to a terminal cannot be reported
}

// summary prints the results of jobs and workloads, and of the assertions.
func (t *terminal) summary(events []eventlog.Event, assertions scenario.Assertions, violations []scenario.Violation) {
	h := eventlog.Replay(events)
	if len(h.Jobs) > 0 {
		t.jobTable(h)
	}
	if len(h.Workloads) > 0 {
		t.workloadTable(h)
	}
	fmt.Fprintln(t.w)
	for _, assertion := range assertions {
		mark, detail := t.paint(green, "ok    "), ""
		for _, violation := range violations {
			if violation.Assertion == assertion.Text {
				mark, detail = t.paint(red, "FAILED"), ": "+violation.Detail
			}
		}
		fmt.Fprintf(t.w, "  %s  %s%s\n", mark, assertion.Text, detail)
	}
}

// ending prints the result of a scenario in one sentence, and where to read on.
func (t *terminal) ending(ran scenario.Scenario, outcome scenario.Outcome, scenarios []scenario.Scenario) {
	result := fmt.Sprintf("All %d assertions hold. %s", len(ran.Assertions), ran.Summary)
	if failed := len(outcome.Violations); failed > 0 {
		result = fmt.Sprintf("%d of %d assertions FAILED, see above.", failed, len(ran.Assertions))
	}
	t.printf("\n%s\n", t.paint(bold, result))
	t.printf("Timeline, for a browser:   %s", outcome.Page)
	t.printf("Terraform configuration:   %s", ran.Example())
	t.printf("Guide, step by step:       %s", ran.Guide)
	t.printf("\nOther scenarios:")
	for _, other := range scenarios {
		if other.Name != ran.Name {
			t.printf("  SCENARIO=%-18s make demo   %s", other.Name, other.Title)
		}
	}
}
