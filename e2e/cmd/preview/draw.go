package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/wording"
)

// How a pod's time is drawn, a character for each of columns equal parts of the run.
const (
	columns   = 60
	waiting   = "·"
	runs      = "█"
	preempted = "x"
)

// draw is a row for each pod: when it waited, ran and was preempted.
func draw(h *eventlog.History) string {
	width := 0
	for _, pod := range h.Pods {
		width = max(width, len(pod.Name))
	}
	var out strings.Builder
	for _, pod := range h.Pods {
		fmt.Fprintf(&out, "  %-*s  %s\n", width, pod.Name, row(h, pod))
	}
	end := wording.Duration(h.End.Sub(h.Start))
	fmt.Fprintf(&out, "  %-*s  0 s%*s\n", width, "", columns-len("0 s"), end)
	fmt.Fprintf(&out, "  %s waits   %s runs   %s preempted\n", waiting, runs, preempted)
	return out.String()
}

func row(h *eventlog.History, pod *eventlog.PodHistory) string {
	ended := pod.Ended
	if ended.IsZero() {
		ended = h.End
	}
	var out strings.Builder
	part := h.End.Sub(h.Start) / columns
	for i := range columns {
		from := h.Start.Add(time.Duration(i) * part)
		to := from.Add(part)
		switch {
		case !pod.Created.Before(to):
			out.WriteString(" ")
		case !ended.After(from):
			return out.String()
		case pod.Preempted() && !ended.After(to):
			out.WriteString(preempted)
		case !pod.Running.IsZero() && pod.Running.Before(to):
			out.WriteString(runs)
		default:
			out.WriteString(waiting)
		}
	}
	return out.String()
}
