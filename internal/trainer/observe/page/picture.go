package page

import (
	"fmt"
	"math"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/picture"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/history"
	"github.com/elastic-training/terraform-provider-elastic/internal/wording"
)

// Lengths are in the pictures' user units, which are CSS pixels at the width that one was made for.
const (
	wideWidth, narrowWidth   = 1008, 343
	wideGutter, narrowGutter = 66, 40 // left of the lanes: workers' names, and the charts' values

	headHeight  = 10.0 // for names and marks that are higher than their lane
	axisHeight  = 26.0
	chartHeight = 104.0
	chartGap    = 34.0
	footHeight  = 8.0
	leastWidth  = 1.5 // of what was short, so that it is seen
)

// drawing is one picture at one width. All of a run's pictures have the same time from left to right.
type drawing struct {
	view
	picture.Markup
	id     string // sets this picture's pattern names apart from the other's
	narrow bool
	x0, x1 float64
}

func (v view) pictures(m *picture.Markup) {
	m.Put(`<section id="picture">
<h2>Workers and progress over time</h2>`)
	v.legend(m)
	for _, narrow := range []bool{false, true} {
		d := &drawing{view: v, id: "wide", narrow: narrow, x0: wideGutter, x1: wideWidth - 1}
		if narrow {
			d.id, d.x0, d.x1 = "narrow", narrowGutter, narrowWidth-1
		}
		m.Put(`%s`, d.draw())
	}
	m.Put(`</section>`)
}

func (d *drawing) x(t time.Duration) float64 {
	if d.now <= 0 {
		return d.x0
	}
	return d.x0 + (d.x1-d.x0)*math.Min(1, math.Max(0, float64(t)/float64(d.now)))
}

// draw draws lanes, axis and charts from the top down; bands of the job's phases lie under all of them.
func (d *drawing) draw() picture.Raw {
	bottom := d.lanes(headHeight)
	d.TimeAxis(d.x0, d.x1, bottom+4, (d.x1-d.x0)/75, d.now)
	y := bottom + 4 + axisHeight
	for _, chart := range []func(y float64) bool{d.throughput, d.loss} {
		if chart(y + chartGap) {
			y += chartGap + chartHeight
		}
	}
	var whole picture.Markup
	whole.Put(`<svg class="%s" viewBox="0 0 %g %g" role="img" aria-label="%s">
<defs><pattern id="%s-pending" class="job0" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="tint" width="7" height="7"/><rect class="solid" width="2" height="7"/></pattern></defs>`,
		d.id, d.x1+1, y+footHeight, d.summary(), d.id)
	whole.Put("%s</svg>", d.Markup.Markup())
	return whole.Markup()
}

// summary is the picture in words.
func (d *drawing) summary() string {
	return fmt.Sprintf("%s over %s; %s, %s; throughput and loss over the same time. The tables below say the same.",
		wording.Number(len(d.Workers)+d.Dropped, "worker"), wording.Duration(d.now), wording.Number(int(d.Preemptions), "preemption"), wording.Number(int(d.Losses), "other loss"))
}

// bands show when the job waited or evaluated.
func (d *drawing) bands(y, height float64) {
	for i, p := range d.Phases {
		class := ""
		switch p.Name {
		case trainingjob.PhaseWaiting:
			class = "waits"
		case trainingjob.PhaseEvaluating, trainingjob.PhaseCannotSave:
			class = "evaluates"
		default:
			continue
		}
		to := p.To
		if i == len(d.Phases)-1 && !d.Over {
			to = d.now
		}
		d.Put(`<rect class="band %s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`, class, d.x(p.From), y, math.Max(leastWidth, d.x(to)-d.x(p.From)), height)
	}
}

// present are the kinds of marks that there are.
func (v view) present() map[history.Kind]bool {
	kinds := map[history.Kind]bool{}
	for _, l := range v.Workers {
		for _, mark := range l.Interruptions {
			kinds[mark.Kind] = true
		}
	}
	return kinds
}

func (v view) legend(m *picture.Markup) {
	m.Put(`<div class="legend" aria-hidden="true">`)
	key := func(drawn picture.Raw, text string) {
		m.Put(`<span><svg viewBox="0 0 22 14">%s</svg>%s</span>`, drawn, text)
	}
	for _, state := range []history.State{history.Ready, history.Joining, history.Starting} {
		key(picture.Raw(`<g class="job0"><rect class="`+state+`" width="22" height="14" rx="3"/></g>`), history.Describe(state))
	}
	key(`<g class="job0"><rect class="tint" x="0.5" y="0.5" width="21" height="13" rx="3"/><path class="curve" d="M3 12L12 2M10 12L19 2"/><rect class="pendingedge" x="0.5" y="0.5" width="21" height="13" rx="3"/></g>`, history.Describe(history.Pending))
	present := v.present()
	if present[history.Preempted] {
		key(picture.Preempted(11, 7), "preempted")
	}
	if present[history.Lost] || present[history.Failed] || present[history.Deleted] {
		key(lostMark(11, 7), "lost, failed or deleted")
	}
	took := map[trainingjob.Phase]time.Duration{}
	for _, p := range v.Phases {
		took[p.Name] += p.To - p.From
	}
	if took[trainingjob.PhaseWaiting] > v.now/200 {
		key(`<rect class="band waits" width="22" height="14" rx="3"/>`, "the job waits")
	}
	if took[trainingjob.PhaseEvaluating]+took[trainingjob.PhaseCannotSave] > v.now/200 {
		key(`<rect class="band evaluates" width="22" height="14" rx="3"/>`, "evaluating and saving")
	}
	m.Put(`</div>`)
}

// lostMark is at the end of a worker that did not end by itself and was not preempted. It differs from picture.Preempted in
// shape, not in colour alone.
func lostMark(x, y float64) picture.Raw {
	return picture.Raw(fmt.Sprintf(`<circle class="ring" cx="%.1f" cy="%.1f" r="5.5"/><path class="ringcross" d="M%.1f %.1fl4 4m0 -4l-4 4"/>`, x, y, x-2, y-2))
}
