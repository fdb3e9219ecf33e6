// Package terminal shows a run on a terminal, in place: how far it is, how fast and how well, its workers, and the time
// that is left. Frame, which decides what is shown, is pure; View draws it.
//
// A frame leaves the terminal as it found it: the cursor is never hidden, and no mode stays switched, so that there is
// nothing to restore however the program ends.
package terminal

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/history"
	"github.com/elastic-training/terraform-provider-elastic/internal/wording"
)

const (
	leastBar, mostBar = 10, 48
	mostWorkers       = 24 // named one by one, where the line is long enough
	lostFor           = 10 * time.Second
	gap               = "   "
)

// style is a terminal's escape sequence for a kind of text.
type style string

const (
	plain  style = ""
	bold   style = "\x1b[1m"
	faint  style = "\x1b[2m"
	good   style = "\x1b[32m"
	busy   style = "\x1b[34m"
	alarm  style = "\x1b[31m"
	waits  style = "\x1b[33m"
	normal       = "\x1b[0m"
)

// piece is a text in one style.
type piece struct {
	style style
	text  string
}

// Frame is the lines of a run, each of at most width cells; colour reports whether there may be any.
func Frame(h *history.History, now time.Duration, width int, colour bool) []string {
	width = max(width, 1)
	s := h.Status
	var lines []string
	put := func(groups ...[]piece) {
		if line := fit(groups, width, colour); line != "" {
			lines = append(lines, line)
		}
	}
	put(head(h, now, width)...)
	put(figures(h, now)...)
	put(workers(h, now, width)...)
	put(phases(s.GoodputSplit)...)
	for _, line := range disruptions(s.Disruptions) {
		put(line...)
	}
	if s.Message != "" && s.Phase != trainingjob.PhaseRunning {
		put([]piece{{waits, cut(clean(s.Message), width)}})
	}
	return lines
}

// head is the bar, and where the run is.
func head(h *history.History, now time.Duration, width int) [][]piece {
	s := h.Status
	if h.Job.Epochs == 0 { // a command: how far it has come is not known
		return [][]piece{{{bold, fmt.Sprintf("start %d", s.Starts)}}, {{plain, s.Message}}, {{faint, wording.Duration(now.Round(time.Second))}}}
	}
	share := 0.0
	if s.StepsTotal > 0 {
		share = float64(s.StepsDone) / float64(s.StepsTotal)
	}
	groups := [][]piece{
		nil, // the bar, when it is known how much room there is
		{{bold, wording.Percent(share)}},
		{{plain, fmt.Sprintf("step %s/%s", wording.Count(s.StepsDone), wording.Count(s.StepsTotal))}},
		{{plain, fmt.Sprintf("epoch %d/%d", min(s.Epoch+1, h.Job.Epochs), h.Job.Epochs)}},
		{{faint, timing(h, now)}},
	}
	used := 0
	for _, g := range groups[1:] {
		used += cells(g[0].text) + len(gap)
	}
	room := min(mostBar, width-used)
	if room < leastBar {
		return groups[1:]
	}
	full := int(share * float64(room))
	groups[0] = []piece{{busy, strings.Repeat("━", full)}, {faint, strings.Repeat("─", room-full)}}
	return groups
}

// timing is how long it takes still, or what is done instead of training.
func timing(h *history.History, now time.Duration) string {
	switch h.Status.Phase {
	case trainingjob.PhaseRunning:
		if left, known := h.Left(); known && !h.Over {
			return wording.Duration(left) + " left"
		}
	case trainingjob.PhaseEvaluating:
		return "evaluating and saving"
	case trainingjob.PhaseWaiting:
		if h.Steps > 0 && !h.Over {
			return "waiting for workers"
		}
	default:
	}
	return wording.Duration(now)
}

// figures are how fast, how well.
func figures(h *history.History, now time.Duration) [][]piece {
	s := h.Status
	var groups [][]piece
	figure := func(name, value string) { groups = append(groups, []piece{{faint, name + " "}, {plain, value}}) }
	if s.Loss != nil {
		figure("loss", fmt.Sprintf("%.4f", *s.Loss))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Metrics)) {
		figure(clean(name), fmt.Sprintf("%.4f", s.Metrics[name]))
	}
	if n := len(s.Evaluations); n > 0 && !h.Over {
		figure("validation", fmt.Sprintf("%.4f", s.Evaluations[n-1].Loss))
	}
	if _, records := h.Rate(now); records > 0 && !h.Over {
		figure("records/s", wording.Count(int64(records+0.5)))
	}
	if s.Goodput != nil {
		figure("goodput", wording.Percent(*s.Goodput))
	}
	if s.CheckpointStep > 0 {
		figure("checkpoint", "step "+wording.Count(s.CheckpointStep))
	}
	return groups
}

// phases are what the job's life was spent on.
func phases(split *trainingjob.GoodputSplit) (groups [][]piece) {
	if split == nil {
		return nil
	}
	life := 0.0
	for _, seconds := range split.Seconds {
		life += seconds
	}
	for _, phase := range trainingjob.GoodputPhases() {
		if seconds := split.Seconds[phase]; seconds > 0 {
			groups = append(groups, []piece{{faint, strings.ReplaceAll(string(phase), "_", " ") + " "}, {plain, wording.Percent(seconds / life)}})
		}
	}
	return groups
}

// disruptions are their number and cost, and on a line of its own the newest one.
func disruptions(d *trainingjob.Disruptions) [][][]piece {
	if d == nil {
		return nil
	}
	lines := [][][]piece{{
		{{faint, "disruptions "}, {plain, wording.Count(d.Count)}},
		{{faint, "lost "}, {plain, fmt.Sprintf("%s, %.1f s", wording.Number(int(d.LostSteps), "step"), d.LostSeconds)}},
	}}
	if n := len(d.Newest); n > 0 {
		last := d.Newest[n-1]
		took := "not recovered yet"
		if last.Recovered != nil {
			took = fmt.Sprintf("recovered after %.1f s", *last.Recovered)
		}
		what := fmt.Sprintf("last, %s: %s %s%s", took, cmp.Or(last.Pod, last.Role), last.Kind, last.Why())
		lines = append(lines, [][]piece{{{plain, clean(what)}}})
	}
	return lines
}

// workers are those that are there, and for a while those that are not any more.
func workers(h *history.History, now time.Duration, width int) [][]piece {
	var named []piece
	counts := map[history.State]int{}
	gone := 0
	for _, l := range h.Workers {
		switch {
		case !l.Ended:
			counts[l.State()]++
			mark, as := look(l.State())
			named = append(named, piece{as, fmt.Sprintf(" %s %d", mark, l.Worker)})
		case len(l.Interruptions) > 0:
			gone++
			if last := l.Interruptions[len(l.Interruptions)-1]; now-last.At < lostFor && !h.Over {
				named = append(named, piece{alarm, fmt.Sprintf(" ✕ %d %s", l.Worker, last.Kind)})
			}
		}
	}
	label := []piece{{faint, "workers"}}
	taken := []piece{{faint, "taken away "}, {plain, wording.Count(int64(gone + h.Dropped))}}
	if length := total(named); len(named) == 0 || len(named) > mostWorkers || cells("workers")+length > width {
		for _, state := range slices.Backward(history.States()) {
			if counts[state] > 0 {
				mark, as := look(state)
				label = append(label, piece{as, fmt.Sprintf(" %s %d %s", mark, counts[state], history.Describe(state))})
			}
		}
	} else {
		label = append(label, named...)
	}
	switch {
	case h.Over:
		label = append(label[:1], piece{plain, fmt.Sprintf(" %s in all", wording.Count(int64(len(h.Workers)+h.Dropped)))})
	case len(label) == 1:
		label = append(label, piece{plain, " none yet"})
	}
	if gone+h.Dropped == 0 {
		return [][]piece{label}
	}
	return [][]piece{label, taken}
}

func look(s history.State) (mark string, as style) {
	switch s {
	case history.Ready:
		return "●", good
	case history.Joining, history.Starting:
		return "◐", busy
	default:
		return "○", waits
	}
}

// fit joins as many groups as a line has room for. The first is always there, cut if it must be.
func fit(groups [][]piece, width int, colour bool) string {
	var line strings.Builder
	room := width
	for i, group := range groups {
		need := total(group)
		if i > 0 {
			need += len(gap)
			if need > room {
				break
			}
			line.WriteString(gap)
			room -= len(gap)
		}
		for j, p := range group {
			if j > 0 && cells(p.text) > room {
				break
			}
			text := cut(p.text, room)
			room -= cells(text)
			if colour && p.style != plain && text != "" {
				text = string(p.style) + text + normal
			}
			line.WriteString(text)
		}
	}
	return line.String()
}

func total(pieces []piece) (n int) {
	for _, p := range pieces {
		n += cells(p.text)
	}
	return n
}

// clean makes one line of a text from elsewhere, without what a terminal would take for a command.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}

// cells is how wide a text is at the most: beyond the European scripts a letter may take two cells.
func cells(text string) (n int) {
	for _, r := range text {
		n++
		if r >= 0x1100 && (r < 0x2000 || r >= 0x2e80) {
			n++
		}
	}
	return n
}

// cut is as much of a text as has room.
func cut(text string, room int) string {
	for i, r := range text {
		if room -= cells(string(r)); room < 0 {
			return text[:i]
		}
	}
	return text
}
