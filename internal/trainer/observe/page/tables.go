package page

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/picture"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/history"
	"github.com/elastic-training/terraform-provider-elastic/internal/wording"
)

const (
	mostRows   = 60 // of workers, the newest of those that have gone
	numberRows = 20 // of the curves as numbers
)

// workers is what the lanes say, as a table: those that are there first.
func (v view) workers(m *picture.Markup) {
	if len(v.Workers) == 0 {
		m.Put(`<section id="workers"></section>`)
		return
	}
	rows := slices.Clone(v.Workers)
	slices.SortStableFunc(rows, func(a, b *history.WorkerHistory) int {
		switch {
		case a.Ended != b.Ended && b.Ended:
			return -1
		case a.Ended != b.Ended:
			return 1
		case a.Ended:
			return b.Worker - a.Worker
		}
		return a.Worker - b.Worker
	})
	left := max(0, len(rows)-mostRows) + v.Dropped
	rows = rows[:min(len(rows), mostRows)]
	m.Put(`<section id="workers"><h2>The workers</h2>
<div class="scroll" tabindex="0" role="region" aria-label="The workers, as a table"><table>
<tr><th>worker</th><th>state</th><th>from</th><th>there for</th><th class="number">gradients</th><th>why</th><th>pod</th></tr>`)
	for _, l := range rows {
		m.Put(`<tr><td>%d</td><td>%s</td><td>%s</td><td>%s</td><td class="number">%s</td><td class="reason">%s</td><td>%s</td></tr>`,
			l.Worker, tableState(l), wording.Duration(l.From()), wording.Duration(v.lifetime(l)), wording.Count(l.Gradients), endReason(l), l.Pod)
	}
	m.Put(`</table></div>`)
	if left > 0 {
		m.Put(`<p class="soft">%s that had gone before are not listed.</p>`, wording.Number(left, "worker"))
	}
	m.Put(`</section>`)
}

func tableState(l *history.WorkerHistory) string {
	if !l.Ended {
		return history.Describe(l.State())
	}
	if n := len(l.Interruptions); n > 0 {
		return string(l.Interruptions[n-1].Kind)
	}
	return "ended"
}

// endReason is a worker's reason, and how often it was taken away before.
func endReason(l *history.WorkerHistory) string {
	var parts []string
	if !l.Ended && l.Reason != "" {
		parts = append(parts, l.Reason)
	}
	for i, mark := range l.Interruptions {
		if l.Ended && i == len(l.Interruptions)-1 {
			if mark.Reason != "" {
				parts = append(parts, mark.Reason)
			}
			continue
		}
		parts = append(parts, fmt.Sprintf("%s after %s", mark.Kind, wording.Duration(mark.At)))
	}
	return strings.Join(parts, "; ")
}

// disruptions are those that the status lists, over all masters, the newest first.
func (v view) disruptions(m *picture.Markup) {
	d := v.Status.Disruptions
	if d == nil || len(d.Newest) == 0 {
		m.Put(`<section id="disruptions"></section>`)
		return
	}
	m.Put(`<section id="disruptions"><h2>Disruptions</h2>
<div class="scroll" tabindex="0" role="region" aria-label="Disruptions, as a table"><table>
<tr><th>at (UTC)</th><th>pod</th><th>how</th><th>reason</th><th>preemptor</th><th class="number">step</th><th class="number">lost steps</th><th>lost</th><th>recovered after</th><th>full size after</th></tr>`)
	for _, one := range slices.Backward(d.Newest) {
		m.Put(`<tr><td>%s</td><td>%s</td><td>%s</td><td class="reason">%s</td><td>%s</td><td class="number">%s</td><td class="number">%s</td><td>%s</td><td>%s</td><td>%s</td></tr>`,
			one.At.UTC().Format(time.DateTime), cmp.Or(one.Pod, "the "+one.Role), string(one.Kind), one.Reason, one.Preemptor(),
			wording.Count(one.Step), wording.Count(one.LostSteps), seconds(one.LostSeconds), v.after(one.Recovered), v.after(one.FullSize))
	}
	m.Put(`</table></div>`)
	if left := int(d.Count) - len(d.Newest); left > 0 {
		m.Put(`<p class="soft">%s before these are counted, and not listed.</p>`, wording.Number(left, "disruption"))
	}
	m.Put(`</section>`)
}

// after is a time that may not have come yet, or never will.
func (v view) after(s *float64) string {
	switch {
	case s != nil:
		return seconds(*s)
	case v.Over:
		return "never"
	}
	return "not yet"
}

// evaluations are those of the validation data, the newest first.
func (v view) evaluations(m *picture.Markup) {
	if len(v.Evaluations) == 0 {
		m.Put(`<section id="evaluations"></section>`)
		return
	}
	names := slices.Sorted(maps.Keys(v.Evaluations[len(v.Evaluations)-1].Metrics))
	m.Put(`<section id="evaluations"><h2>Evaluations</h2>
<div class="scroll" tabindex="0" role="region" aria-label="Evaluations of the validation data, as a table"><table>
<tr><th>after</th><th class="number">step</th><th class="number">loss</th>`)
	for _, name := range names {
		m.Put(`<th class="number">%s</th>`, name)
	}
	m.Put(`<th class="number">records</th></tr>`)
	for _, e := range slices.Backward(v.Evaluations) {
		m.Put(`<tr><td>%s</td><td class="number">%s</td><td class="number">%s</td>`, wording.Duration(e.At), wording.Count(e.Step), wording.Loss(e.Loss))
		for _, name := range names {
			m.Put(`<td class="number">%s</td>`, wording.Metric(e.Metrics[name]))
		}
		m.Put(`<td class="number">%s</td></tr>`, wording.Count(e.Records))
	}
	m.Put(`</table></div></section>`)
}

// notices are what happened, the newest first.
func (v view) notices(m *picture.Markup) {
	if len(v.Notices) == 0 {
		m.Put(`<section id="notices"></section>`)
		return
	}
	m.Put(`<section id="notices"><h2>What happened</h2>
<ol class="notices" tabindex="0" aria-label="What happened, the newest first">`)
	for _, n := range slices.Backward(v.Notices) {
		class := ""
		if n.Warning {
			class = "warning"
		}
		m.Put(`<li class="%s"><time datetime="%s">%s</time><span>%s</span></li>`,
			class, v.Began.Add(n.At).UTC().Format(time.RFC3339), wording.Duration(n.At), n.Message)
	}
	m.Put(`</ol></section>`)
}

// numbers are the curves as a table, for those who do not see them.
func (v view) numbers(m *picture.Markup) {
	s := v.points(numberRows)
	if len(s.Points) == 0 {
		m.Put(`<section id="numbers"></section>`)
		return
	}
	m.Put(`<section id="numbers"><details id="curves"><summary>The curves as numbers</summary>
<div class="scroll" tabindex="0" role="region" aria-label="The curves, as a table"><table>
<tr><th>time</th><th class="number">steps</th><th class="number">records per second</th><th class="number">loss</th></tr>`)
	for i, p := range s.Points {
		loss := "–"
		if l, ok := p.Loss(); ok {
			loss = wording.Loss(l)
		}
		m.Put(`<tr><td>%s</td><td class="number">%s</td><td class="number">%s</td><td class="number">%s</td></tr>`,
			wording.Duration(time.Duration(i)*s.Width), wording.Count(p.Steps), wording.Count(int64(math.Round(perSecond(p, s.Width)))), loss)
	}
	m.Put(`</table></div></details></section>`)
}
