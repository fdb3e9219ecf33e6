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

// terminal prints lines, in colour where a person looks at it.
type terminal struct {
	w      io.Writer
	colour bool
	jobs   map[string]string // the colour of each job, in the order of their turning up

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

// newTerminal prints to file. NO_COLOR (any value) and TERM=dumb switch colours off, as elsewhere.
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

// say prints a line of the demo's own.
func (t *terminal) say(format string, args ...any) {
	fmt.Fprintf(t.w, format+"\n", args...)
}

// line prints a line of the story: time, job, pod, text.
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
	t.jobWidth, t.whoWidth = max(t.jobWidth, len(line.Job)), max(t.whoWidth, len(line.Who))
	job := fmt.Sprintf("%-*s", t.jobWidth, line.Job)
	if line.Job != "" {
		job = t.paint(t.job(line.Job), job)
	}
	fmt.Fprintf(t.w, "%s  %s %-*s %s\n", at, job, t.whoWidth, line.Who, text)
}

// jobTable prints the training jobs in numbers.
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

// workloadTable prints what the queue made of the workloads.
func (t *terminal) workloadTable(h *eventlog.History) {
	var rows [][]string
	for _, w := range h.Workloads {
		admitted := 0
		for _, spell := range w.Spells {
			if spell.Admitted {
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
	table.Flush() //nolint:errcheck // a failed write to a terminal has nobody to be told
}

// summary prints what became of jobs and workloads, and what was promised.
func (t *terminal) summary(events []eventlog.Event, promises scenario.Promises, violations []scenario.Violation) {
	h := eventlog.Replay(events)
	if len(h.Jobs) > 0 {
		t.jobTable(h)
	}
	if len(h.Workloads) > 0 {
		t.workloadTable(h)
	}
	fmt.Fprintln(t.w)
	for _, promise := range promises {
		mark, detail := t.paint(green, "kept  "), ""
		for _, violation := range violations {
			if violation.Rule == promise.Text {
				mark, detail = t.paint(red, "BROKEN"), ": "+violation.Detail
			}
		}
		fmt.Fprintf(t.w, "  %s  %s%s\n", mark, promise.Text, detail)
	}
}

// ending says in a sentence what came of a story, and where its reader can go on.
func (t *terminal) ending(told scenario.Story, outcome scenario.Outcome, stories []scenario.Story) {
	result := fmt.Sprintf("All %d promises were kept. %s", len(told.Promises), told.Moral)
	if len(outcome.Violations) > 0 {
		result = fmt.Sprintf("Of %d promises some were not kept: see BROKEN above.", len(told.Promises))
	}
	t.say("\n%s\n", t.paint(bold, result))
	t.say("The picture, for a browser:  %s", outcome.Page)
	t.say("What terraform applied:      %s", told.Example())
	t.say("Step by step, by yourself:   %s", told.Guide)
	for _, other := range stories {
		if other.Name != told.Name {
			t.say("Another story:               STORY=%-18s make demo   %s", other.Name, other.Title)
		}
	}
}
