package timeline

import (
	"fmt"
	"math"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/picture"
	"github.com/elastic-training/terraform-provider-elastic/internal/wording"
)

const (
	jobColours  = 4 // .job0 to .job3 of page.html
	mostBars    = 2000
	headHeight  = 30.0
	axisHeight  = 26.0
	chartHeight = 110.0
	chartGap    = 38.0
	footHeight  = 18.0
	indent      = 14 // of what is in a domain of a topology
)

// drawing is one picture at one width.
type drawing struct {
	history *eventlog.History
	stages  []eventlog.StageAt
	colours map[string]int
	id      string // sets this picture's pattern names apart from the other's
	width   float64
	scale   scale
	image   bool // stands alone, without the page around it: it has a legend, and no chart of the loss
	*picture.Markup
}

// draw draws the lanes of nodes with their pods, or an overview where that would be too many rows, and the charts
// below. It says what the overview shows, "" where there is none.
func (d *drawing) draw() (svg picture.Raw, caption string) {
	var whole, lanes, charts picture.Markup
	d.Markup = &lanes
	bottom := d.lanes(headHeight)
	if bottom < 0 {
		o := newOverview(d)
		bottom, caption = o.lanes(headHeight), o.caption()
	}
	d.Markup = &charts
	d.TimeAxis(d.scale.x0, d.scale.x1, bottom, d.width/75, d.scale.to.Sub(d.scale.from))
	y := bottom + axisHeight
	for _, usage := range d.usages() {
		y += chartGap
		d.usage(usage, y)
		y += chartHeight
	}
	for _, chart := range d.charts() {
		y += chartGap
		d.chart(chart, y)
		y += chartHeight
	}
	d.Markup = &whole
	d.Put(`<svg class=%q viewBox="0 0 %g %g" role="img" aria-label="Timeline: pods by node">`, d.id, d.width, y+footHeight)
	d.patterns()
	if d.image {
		d.legend()
	}
	d.stageLines(bottom)
	d.Put(`%s%s</svg>`, lanes.Markup(), charts.Markup())
	return whole.Markup(), caption
}

// lanes draws every node's pods as bars; it gives up, with a negative result, where that would be too many rows.
func (d *drawing) lanes(y float64) (bottom float64) {
	if len(d.history.Pods) > mostBars {
		return -1
	}
	lanes := lay(d.history, d.scale)
	rows := 0
	for _, lane := range lanes {
		rows += lane.rows
	}
	if rows > mostRows {
		return -1
	}
	for _, lane := range lanes {
		d.lane(lane, y)
		y += lane.height()
		if !lane.heading {
			y += laneGap
		}
	}
	return y
}

// patterns are the hatchings of waiting pods, one per job's colour.
func (d *drawing) patterns() {
	d.Put(`<defs>`)
	for i := range jobColours {
		d.Put(`<pattern id="%s-wait%d" class="job%d" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">`+
			`<rect class="tint" width="7" height="7"/><rect class="solid" width="2.6" height="7"/></pattern>`, d.id, i, i)
	}
	d.Put(`</defs>`)
}

// legend names the jobs by their colours, above the lanes. It adds which job's model was compared with that of an
// undisturbed run, and is equal.
func (d *drawing) legend() {
	x := 8.0
	for _, name := range d.history.JobNames() {
		text := name
		for _, r := range d.history.Results {
			if r.Job == name && r.SHA256 != "" && r.SHA256 == r.UndisturbedSHA256 {
				text += ": same model as an undisturbed run, SHA-256 " + wording.Hash(r.SHA256)
			}
		}
		d.Put(`<g class="job%d"><rect class="run" x="%.1f" y="6" width="22" height="14" rx="3"/></g>`, d.colours[name], x)
		d.Put(`<text class="label" x="%.1f" y="17.5">%s</text>`, x+28, text)
		x += 28 + float64(len([]rune(text)))*charWidth + 24
	}
}

// stageLines are numbered at the top and run through all lanes.
func (d *drawing) stageLines(bottom float64) {
	at := make([]float64, len(d.stages)) // of the numbers, which must not cover each other
	const apart = 2*markRadius + 3
	next := markRadius + 1
	for i, stage := range d.stages {
		at[i] = max(d.scale.x(stage.Time), next)
		next = at[i] + apart
	}
	last := d.width - markRadius - 1
	for i := len(at) - 1; i >= 0; i-- {
		at[i] = min(at[i], last)
		last = at[i] - apart
	}
	for i, stage := range d.stages {
		x := d.scale.x(stage.Time)
		d.Put(`<line class="stage" x1="%.1f" x2="%.1f" y1="%g" y2="%.1f"/>`, x, x, 2*markRadius+2, bottom)
		d.Put(`<circle class="stagedot" cx="%.1f" cy="%g" r="%g"/><text class="stagenumber" x="%.1f" y="%g">%d</text>`,
			at[i], markRadius+1, markRadius, at[i], markRadius+4.5, i+1)
	}
}

func (d *drawing) lane(l lane, y float64) {
	class := "lane"
	if l.waiting {
		class = "lane waiting"
	}
	if !l.heading {
		d.Put(`<rect class=%q x="0" y="%.1f" width="%g" height="%.1f" rx="5"/>`, class, y, d.width, l.height())
	}
	d.Put(`<text class="lanetitle" x="%d" y="%.1f">%s</text>`, 8+indent*l.depth, y+14.5, l.title)
	for _, gone := range l.gone {
		d.Put(`<g><title>the node is dead</title><rect class="gone" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/></g>`,
			gone[0], y, max(gone[1]-gone[0], minBar), l.height())
	}
	rowY := func(b bar) float64 { return y + laneTitle + float64(b.row)*(rowHeight+rowGap) }
	for _, b := range l.bars {
		d.bar(b, l.waiting, rowY(b))
	}
	for _, b := range l.bars {
		if !l.waiting && b.taken {
			d.Put(`%s`, picture.Preempted(b.x2, rowY(b)+rowHeight/2))
		}
	}
}

func (d *drawing) bar(b bar, waiting bool, y float64) {
	colour := d.colours[b.job]
	d.Put(`<g class="job%d %s"><title>%s</title>`, colour, b.role, b.title)
	rect := func(class string, style picture.Raw, x1, x2 float64) {
		if x2-x1 > 0.05 {
			d.Put(`<rect class=%q %s x="%.1f" y="%.1f" width="%.1f" height="%g" rx="3"/>`, class, style, x1, y, x2-x1, rowHeight)
		}
	}
	if waiting {
		rect("wait", picture.Raw(fmt.Sprintf(`fill="url(#%s-wait%d)"`, d.id, colour)), b.x1, b.x2)
	} else {
		rect("tint", "", b.x1, b.x2)
		rect("run", "", b.running, b.leaving)
	}
	anchor, class := "start", "label"
	if b.labelAnchorsEnd {
		anchor = "end"
	}
	if b.labelInside && !waiting {
		class = "label inside"
	}
	if b.labelInside && waiting {
		// Hatching makes text hard to read: give it a ground.
		d.Put(`<rect class="ground" x="%.1f" y="%.1f" width="%.1f" height="%g" rx="3"/>`,
			b.labelX-3, y+3, float64(len([]rune(b.label)))*charWidth+6, rowHeight-6)
	}
	d.Put(`<text class=%q text-anchor=%q x="%.1f" y="%.1f">%s</text>`, class, anchor, b.labelX, y+15, b.label)
	d.Put(`</g>`)
}

// curves is a chart of one number of every job over time.
type curves struct {
	title  string
	format string // of the values at its edges
	picture.ChartScale
	jobs []curve
}

type curve struct {
	job    string
	times  []time.Time
	values []float64
}

// lossWeight is the newest report's in the smoothed loss (a geometric mean): a report is of some twenty records.
const lossWeight = 0.3

// charts are progress and loss, each where there is something to show.
func (d *drawing) charts() []curves {
	progress := curves{title: "steps done (% of the job)", format: "%.0f %%", ChartScale: picture.ChartScale{Top: 100}}
	loss := curves{title: "loss while training, smoothed, logarithmic", format: "%.2g", ChartScale: picture.ChartScale{Logarithmic: true, Bottom: math.Inf(1)}}
	for _, job := range d.history.Jobs {
		p, l := curve{job: job.Name}, curve{job: job.Name}
		generation := int64(0)
		for _, point := range job.Points {
			// Another master's curve is another one: nothing is known of the time between them.
			if point.Status.Generation != generation {
				progress.jobs, loss.jobs = append(progress.jobs, p), append(loss.jobs, l)
				p, l, generation = curve{job: job.Name}, curve{job: job.Name}, point.Status.Generation
			}
			if total := point.Status.StepsTotal; total > 0 {
				p.times = append(p.times, point.Time)
				p.values = append(p.values, 100*float64(point.Status.StepsDone)/float64(total))
			}
			// With the last step done the loss is that of the validation data, another quantity.
			if value := point.Status.Loss; value != nil && *value > 0 && point.Status.StepsDone < point.Status.StepsTotal {
				smoothed := *value
				if n := len(l.values); n > 0 {
					smoothed = math.Pow(l.values[n-1], 1-lossWeight) * math.Pow(*value, lossWeight)
				}
				l.times = append(l.times, point.Time)
				l.values = append(l.values, smoothed)
				loss.Bottom, loss.Top = min(loss.Bottom, smoothed), max(loss.Top, smoothed)
			}
		}
		progress.jobs = append(progress.jobs, p)
		loss.jobs = append(loss.jobs, l)
	}
	var charts []curves
	shown := []curves{progress, loss}
	if d.image {
		shown = shown[:1]
	}
	for _, chart := range shown {
		for _, c := range chart.jobs {
			if len(c.values) > 1 {
				charts = append(charts, chart)
				break
			}
		}
	}
	return charts
}

func (d *drawing) chart(c curves, y float64) {
	d.Put(`<text class="charttitle" x="%g" y="%.1f">%s</text>`, d.scale.x0, y-8, c.title)
	d.Put(`<text class="tick" text-anchor="end" x="%.1f" y="%.1f">%s</text>`, d.scale.x1, y-8, fmt.Sprintf(c.format, c.Top))
	d.Put(`<text class="tick" text-anchor="end" x="%.1f" y="%.1f">%s</text>`, d.scale.x1, y+chartHeight+14, fmt.Sprintf(c.format, c.Bottom))
	d.Put(`<rect class="chart" x="%g" y="%.1f" width="%g" height="%g" rx="5"/>`, d.scale.x0, y, d.scale.x1-d.scale.x0, chartHeight)
	for _, curve := range c.jobs {
		if len(curve.values) == 0 {
			continue
		}
		var path picture.Line
		for i, value := range curve.values {
			path.To(d.scale.x(curve.times[i]), y+4+(chartHeight-8)*(1-c.Share(value)))
		}
		d.Put(`<path class="curve job%d" d="%s"><title>%s</title></path>`, d.colours[curve.job], path.String(), curve.job)
	}
}

// describe is a pod's pod in a sentence, for the tooltip.
func describe(pod *eventlog.PodHistory, from time.Time) string {
	text := fmt.Sprintf("%s (%s)", pod.Name, pod.PriorityClass)
	at := func(what string, t time.Time) {
		if !t.IsZero() {
			text += fmt.Sprintf("; %s at %.2f s", what, t.Sub(from).Seconds())
		}
	}
	at("created", pod.Created)
	if pod.FirstMessage != "" {
		text += "; " + pod.FirstMessage
	}
	at("bound to "+pod.Node, pod.Bound)
	at("running", pod.Running)
	at("disrupted ("+pod.Disruption+")", pod.Disrupted)
	at("ended", pod.Ended)
	return text
}

// describeWait is a workload's wait for quota in a sentence, for the tooltip.
func describeWait(workload *eventlog.WorkloadHistory, interval eventlog.Interval, from time.Time) string {
	text := fmt.Sprintf("%s (%s, %d), without quota from %.2f s", workload.Name, workload.PriorityClass, workload.Priority, interval.From.Sub(from).Seconds())
	if interval.Over() {
		text += fmt.Sprintf(" to %.2f s", interval.To.Sub(from).Seconds())
	}
	if interval.Message != "" {
		text += "; " + interval.Message
	}
	return text
}
