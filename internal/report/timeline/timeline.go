// Package timeline draws a scenario's event log as a timeline: a lane for each node, a bar for each pod, marks for
// waits and preemptions, and below it the progress and the loss of each job. The result is one HTML page with SVG,
// without scripts and external resources. It follows the reader's light or dark mode, and contains one drawing for wide
// screens and one for phones. The package is pure: the same log gives the same page.
package timeline

import (
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/picture"
	"github.com/elastic-training/terraform-provider-elastic/internal/wording"
)

// Widths for which the picture is drawn.
const (
	wide   = 1040
	narrow = 360
)

// ErrNothing is that a log has no pod's pod to draw.
var ErrNothing = errors.New("the event log shows no pod for any time, so there is nothing to draw")

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"duration": wording.Duration,
	"percent":  wording.Percent,
	"loss":     wording.Loss,
	"count":    wording.Count,
	"hash":     wording.Hash,
}).Parse(pageText))

// Page is what a page says besides its picture.
type Page struct {
	Title string
	// Text describes the page; it may be empty.
	Text string
	// Simulated means that the times are virtual.
	Simulated bool
	// Facts are numbers, each with its name.
	Facts  [][2]string
	Tables []Table
}

// Table is a table of texts.
type Table struct {
	Title   string
	Columns []string
	Rows    [][]string
}

// Render writes the page of a log. The log may be that of a scenario that failed.
func Render(w io.Writer, title string, events []eventlog.Event) error {
	return Page{Title: title}.Render(w, eventlog.Replay(events))
}

// mostListed is how many pods or workloads a page lists one by one.
const mostListed = 100

// Render writes the page with the picture of a history.
func (p Page) Render(w io.Writer, h *eventlog.History) error {
	from, to, ok := extent(h, p.Simulated)
	if !ok {
		return ErrNothing
	}
	var stages []eventlog.StageAt
	for _, stage := range h.Stages {
		if !stage.Time.Before(from) && !stage.Time.After(to) {
			stages = append(stages, stage)
		}
	}
	summaries := h.Summarize()
	colours := map[string]int{}
	for i, summary := range summaries {
		colours[summary.Job] = i % jobColours
	}
	pictures := map[string]template.HTML{}
	caption := ""
	for _, picture := range []struct {
		name  string
		width float64
	}{{"narrow", narrow}, {"wide", wide}} {
		d := &drawing{history: h, stages: stages, colours: colours, id: picture.name, width: picture.width}
		d.scale = scale{from: from, to: to, x0: 2, x1: picture.width - 2}
		svg, text := d.draw()
		pictures[picture.name], caption = template.HTML(svg), text //nolint:gosec // Markup escapes every text
	}
	summaries = summaries[:min(len(summaries), mostListed)]
	err := page.Execute(w, map[string]any{
		"Style": template.CSS(picture.Style), "Page": p, "Caption": caption, "Wide": pictures["wide"], "Narrow": pictures["narrow"], "Stages": stages, "Faults": h.Faults,
		"Summaries": summaries, "Masters": len(h.Jobs) > 0, "Listed": len(h.Jobs) > 0 && len(summaries) <= mostListed,
		"Shades": []int{0, 1, 2, 3, 4, 5, 6, 7, 8}, "Classes": legendOfClasses(h, from, to), "Workloads": workloadRows(h, to), "Colours": colours, "Results": h.Results, "Pods": podRows(h, to),
		"Began": from.UTC().Format("2 January 2006, 15:04 UTC"), "Took": wording.Duration(to.Sub(from)),
	})
	if err != nil {
		return fmt.Errorf("draw the timeline: %w", err)
	}
	return nil
}

// classKey is a priority class in the legend of what is held.
type classKey struct {
	Name   string
	Colour int
}

// legendOfClasses are the classes by their colours in the charts of what is held; none where there is no such chart.
func legendOfClasses(h *eventlog.History, from, to time.Time) []classKey {
	all := resources(h)
	if len(all) == 0 {
		return nil
	}
	var keys []classKey
	classes := audit(h, all[0], from, to, 1).byClass
	for i, class := range classes {
		if i == jobColours-1 && i+1 < len(classes) {
			return append(keys, classKey{"others", i})
		}
		keys = append(keys, classKey{orNone(class.class), i})
	}
	return keys
}

// podRow is a line about a pod.
type podRow struct {
	*eventlog.PodHistory
	Waited, Ran, Ended string
}

// podRows are lines about the pods; none where they are too many to be read.
func podRows(h *eventlog.History, to time.Time) []podRow {
	if len(h.Pods) > mostListed {
		return nil
	}
	var rows []podRow
	for _, pod := range h.Pods {
		row := podRow{PodHistory: pod, Ended: ending(pod)}
		if wait, waited := pod.Waited(h.End); waited {
			row.Waited = wording.Duration(wait)
		}
		if !pod.Running.IsZero() {
			row.Ran = wording.Duration(pod.EndedBy(to).Sub(pod.Running))
		}
		rows = append(rows, row)
	}
	return rows
}

// workloadRow is a line about a workload.
type workloadRow struct {
	*eventlog.WorkloadHistory
	Waited string
}

func workloadRows(h *eventlog.History, to time.Time) []workloadRow {
	if len(h.Workloads) > mostListed {
		return nil
	}
	var rows []workloadRow
	for _, pod := range h.Workloads {
		rows = append(rows, workloadRow{pod, wording.Duration(pod.Waited(to))})
	}
	return rows
}

// ending is how a pod ended, for a reader.
func ending(pod *eventlog.PodHistory) string {
	switch {
	case pod.Preempted():
		return "preempted"
	case pod.Ended.IsZero():
		return "still there"
	case pod.ExitCode != nil && *pod.ExitCode == 0:
		return "completed"
	case pod.ExitCode != nil:
		return fmt.Sprintf("%s, exit code %d", strings.ToLower(pod.Reason), *pod.ExitCode)
	}
	return "removed"
}
