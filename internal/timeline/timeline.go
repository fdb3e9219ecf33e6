// Package timeline draws a scenario's event log as a picture: a lane per node, a bar per pod, waiting and preemption
// marked, and below it how far each job was and with what loss. The picture is one HTML page with SVG in it, without
// scripts and without anything from elsewhere, light or dark as the reader's system is, and drawn twice, for wide
// screens and for phones. It is pure: the same log gives the same page.
package timeline

import (
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/internal/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/wording"
)

// Widths for which the picture is drawn.
const (
	wide   = 1040
	narrow = 360
)

// ErrNothing is that a log has no pod's life to draw.
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

// Render writes the page of a log. The log may be that of a story that failed.
func Render(w io.Writer, title string, events []eventlog.Event) error {
	h := eventlog.Replay(events)
	from, to, ok := extent(h)
	if !ok {
		return ErrNothing
	}
	var stages []eventlog.StageAt
	for _, stage := range h.Stages {
		if !stage.Time.Before(from) && !stage.Time.After(to) {
			stages = append(stages, stage)
		}
	}
	colours := map[string]int{}
	for i, name := range h.JobNames() {
		colours[name] = i % jobColours
	}
	pictures := map[string]template.HTML{}
	for name, width := range map[string]float64{"wide": wide, "narrow": narrow} {
		d := &drawing{history: h, stages: stages, colours: colours, id: name, width: width}
		d.scale = scale{from: from, to: to, x0: 2, x1: width - 2}
		var svg strings.Builder
		d.draw(&svg)
		pictures[name] = template.HTML(svg.String()) //nolint:gosec // the drawing escapes every text itself
	}
	type podRow struct {
		*eventlog.Life
		Waited, Ran, Ended string
	}
	var pods []podRow
	for _, life := range h.Pods {
		row := podRow{Life: life, Ended: ending(life)}
		if wait, waited := life.Waited(h.End); waited {
			row.Waited = wording.Duration(wait)
		}
		if !life.Running.IsZero() {
			row.Ran = wording.Duration(life.EndedBy(to).Sub(life.Running))
		}
		pods = append(pods, row)
	}
	type workloadRow struct {
		*eventlog.WorkloadLife
		Waited string
	}
	var workloads []workloadRow
	for _, life := range h.Workloads {
		workloads = append(workloads, workloadRow{life, wording.Duration(life.Waited(to))})
	}
	err := page.Execute(w, map[string]any{
		"Title": title, "Wide": pictures["wide"], "Narrow": pictures["narrow"], "Stages": stages, "Faults": h.Faults,
		"Summaries": h.Summarize(), "Jobs": h.Jobs, "Workloads": workloads, "Colours": colours, "Results": h.Results, "Pods": pods,
		"Began": from.UTC().Format("2 January 2006, 15:04 UTC"), "Took": wording.Duration(to.Sub(from)),
	})
	if err != nil {
		return fmt.Errorf("draw the timeline: %w", err)
	}
	return nil
}

// ending is how a pod ended, for a reader.
func ending(life *eventlog.Life) string {
	switch {
	case life.Preempted():
		return "preempted"
	case life.Ended.IsZero():
		return "still there"
	case life.ExitCode != nil && *life.ExitCode == 0:
		return "completed"
	case life.ExitCode != nil:
		return fmt.Sprintf("%s, exit code %d", strings.ToLower(life.Reason), *life.ExitCode)
	}
	return "removed"
}
