package page

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/picture"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/history"
	"github.com/elastic-training/terraform-provider-elastic/internal/wording"
)

const (
	widePoints, narrowPoints = 168, 84 // of a curve, at the most: more is noise
	stepsPerPoint            = 6       // so that a slow job's curve shows its speed, and not when its steps ended
	chartTicks               = 4       // at the most
	logarithmicFrom          = 8       // largest over smallest loss, above which the axis is logarithmic
)

// points is the series as coarse as it is drawn. The last point is left out while it is short: half a second is no
// speed.
func (v view) points(most int) history.Series {
	least := max(v.now/time.Duration(most), stepsPerPoint*v.Times.Mean(), v.Series.Width)
	s := v.Series.Grouped(max(1, int((least+v.Series.Width-1)/v.Series.Width)))
	if n := len(s.Points); n > 1 && v.now < time.Duration(n)*s.Width {
		s.Points = s.Points[:n-1]
	}
	return s
}

func (d *drawing) points() history.Series {
	if d.narrow {
		return d.view.points(narrowPoints)
	}
	return d.view.points(widePoints)
}

// chart draws a frame with its title and round values at its side, and returns where a value lies.
func (d *drawing) chart(y float64, title string, a scale) func(value float64) float64 {
	place := func(value float64) float64 { return y + chartHeight*(1-a.Share(value)) }
	d.Put(`<text class="charttitle" x="%g" y="%.1f">%s</text>
<rect class="chart" x="%g" y="%.1f" width="%.1f" height="%g" rx="4"/>`, d.x0, y-8, title, d.x0, y, d.x1-d.x0, chartHeight)
	d.bands(y, chartHeight)
	for _, tick := range a.ticks {
		at := place(tick)
		d.Put(`<line class="grid" x1="%g" x2="%g" y1="%.1f" y2="%.1f"/>
<text class="tick" text-anchor="end" x="%.1f" y="%.1f">%s</text>`, d.x0, d.x1, at, at, d.x0-6, at+3.5, short(tick))
	}
	return place
}

// scale is a chart's axis.
type scale struct {
	picture.ChartScale
	ticks []float64
}

// linear is an axis with round ends.
func linear(lowest, highest float64) scale {
	if least := math.Max(1e-9, math.Abs(lowest)/50); highest-lowest < least {
		highest = lowest + least // what differs less is one line, and its ticks would be one number
	}
	step := picture.Tick((highest - lowest) / (chartTicks - 1))
	first, last := math.Floor(lowest/step), math.Ceil(highest/step)
	a := scale{ChartScale: picture.ChartScale{Bottom: first * step, Top: last * step}}
	for i := first; i <= last; i++ {
		a.ticks = append(a.ticks, i*step)
	}
	return a
}

// logarithmic is an axis for values above 0, with ticks at as many of 1, 2 and 5 × 10ⁿ as there is room for.
func logarithmic(lowest, highest float64) scale {
	lowest = math.Max(lowest, highest*1e-12)
	room := math.Pow(highest/lowest, 0.06) // so that the curve does not lie on the edges
	lowest, highest = lowest/room, highest*room
	a := scale{ChartScale: picture.ChartScale{Bottom: lowest, Top: highest, Logarithmic: true}}
	for _, factors := range [][]float64{{1, 2, 5}, {1, 3}, {1}} {
		a.ticks = nil
		for power := math.Floor(math.Log10(lowest)); power <= math.Ceil(math.Log10(highest)); power++ {
			for _, f := range factors {
				if tick := f * math.Pow(10, power); tick >= lowest && tick <= highest {
					a.ticks = append(a.ticks, tick)
				}
			}
		}
		if len(a.ticks) <= chartTicks+1 {
			return a
		}
	}
	every := (len(a.ticks) + chartTicks - 1) / chartTicks
	var fewer []float64
	for i := 0; i < len(a.ticks); i += every {
		fewer = append(fewer, a.ticks[i])
	}
	a.ticks = fewer
	return a
}

// short is a value in the little room beside a chart.
func short(value float64) string {
	switch magnitude := math.Abs(value); {
	case magnitude >= 999_500:
		return fmt.Sprintf("%.3gM", value/1e6)
	case magnitude >= 9_995:
		return fmt.Sprintf("%.3gk", value/1e3)
	case magnitude >= 1000:
		return wording.Count(int64(math.Round(value)))
	case magnitude < 1e-9:
		return "0"
	}
	return fmt.Sprintf("%.3g", value)
}

// throughput is a step curve of records per second.
func (d *drawing) throughput(y float64) bool {
	s := d.points()
	highest := 0.0
	for _, p := range s.Points {
		highest = math.Max(highest, perSecond(p, s.Width))
	}
	if highest <= 0 {
		return false
	}
	place := d.chart(y, "records per second", linear(0, highest))
	var line picture.Line
	line.To(d.x0, place(0))
	x := d.x0
	for i, p := range s.Points {
		from, to := d.x(time.Duration(i)*s.Width), d.x(time.Duration(i+1)*s.Width)
		at := place(perSecond(p, s.Width))
		line.To(from, at)
		line.To(to, at)
		x = to
	}
	top := strings.Replace(line.String(), "M", "L", 1)
	d.Put(`<g class="job0"><path class="area" d="M%.1f %.1f%sL%.1f %.1fz"/><path class="curve" d="%s"/></g>`, d.x0, place(0), top, x, place(0), line.String())
	return true
}

func perSecond(p history.Point, width time.Duration) float64 {
	return float64(p.Records) / width.Seconds()
}

// loss is a curve of the mean loss, with a dot where there is only one point.
func (d *drawing) loss(y float64) bool {
	s := d.points()
	lowest, highest, count := math.Inf(1), math.Inf(-1), 0
	for _, p := range s.Points {
		if loss, ok := p.Loss(); ok {
			lowest, highest, count = math.Min(lowest, loss), math.Max(highest, loss), count+1
		}
	}
	for _, e := range d.Evaluations {
		lowest, highest = math.Min(lowest, e.Loss), math.Max(highest, e.Loss)
	}
	if count == 0 || math.IsNaN(highest-lowest) || math.IsInf(highest-lowest, 0) {
		return false
	}
	title, axis := "loss while training", linear(lowest, highest)
	if len(d.Evaluations) > 0 {
		title = "loss while training, and of the validation data (dots)"
		if d.narrow {
			title = "loss; dots: validation data"
		}
	}
	if lowest > 0 && highest/lowest >= logarithmicFrom {
		title, axis = title+", logarithmic", logarithmic(lowest, highest)
	}
	place := d.chart(y, title, axis)
	var line picture.Line
	var x, at float64
	for i, p := range s.Points {
		loss, ok := p.Loss()
		if !ok {
			continue // nothing was computed then; the curve continues behind it
		}
		x, at = d.x(time.Duration(i)*s.Width+s.Width/2), place(loss)
		line.To(x, at)
	}
	d.Put(`<g class="job2"><path class="curve" d="%s"/><circle class="dot" cx="%.1f" cy="%.1f" r="3"/></g>`, line.String(), x, at)
	for _, e := range d.Evaluations {
		d.Put(`<circle class="evaluation job1" cx="%.1f" cy="%.1f" r="3.5"><title>%s</title></circle>`,
			d.x(e.At), place(e.Loss), fmt.Sprintf("validation data at step %s: loss %s", wording.Count(e.Step), wording.Loss(e.Loss)))
	}
	return true
}
