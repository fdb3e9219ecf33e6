package picture

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// ChartScale is the vertical axis of a chart.
type ChartScale struct {
	Bottom, Top float64
	Logarithmic bool // then Bottom is above 0
}

// Share is where a value lies between the lower edge, 0, and the upper one, 1.
func (s ChartScale) Share(value float64) float64 {
	bottom, top := s.Bottom, s.Top
	if s.Logarithmic {
		bottom, top, value = math.Log(bottom), math.Log(top), math.Log(max(value, bottom))
	}
	if top <= bottom {
		return 0.5
	}
	return min(max((value-bottom)/(top-bottom), 0), 1)
}

// Line is the path of a curve.
type Line struct{ strings.Builder }

// To leads the line to a point, where it begins if it has no other.
func (l *Line) To(x, y float64) {
	verb := "L"
	if l.Len() == 0 {
		verb = "M"
	}
	fmt.Fprintf(l, "%s%.1f %.1f", verb, x, y)
}

// TimeAxis draws a time from x0 to x1, in the unit that suits it, with at most as many ticks as given.
func (m *Markup) TimeAxis(x0, x1, y, ticks float64, long time.Duration) {
	unit, name := axisUnit(long)
	all := float64(long) / float64(unit)
	if all <= 0 {
		return
	}
	step := Tick(all / ticks)
	m.Put(`<line class="axis" x1="%g" x2="%g" y1="%.1f" y2="%.1f"/>`, x0, x1, y, y)
	for i := 0.0; i*step <= all; i++ {
		x := x0 + (x1-x0)*i*step/all
		anchor := "middle"
		if i == 0 {
			anchor = "start"
		} else if x > x1-18 {
			anchor = "end"
		}
		m.Put(`<line class="axis" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>
<text class="tick" text-anchor="%s" x="%.1f" y="%.1f">%.6g %s</text>`, x, x, y, y+4, anchor, x, y+17, i*step, name)
	}
}

// MarkRadius is that of Preempted.
const MarkRadius = 7.0

// Preempted is the mark at the end of what was preempted.
func Preempted(x, y float64) Raw {
	const arm = 3.2
	return Raw(fmt.Sprintf(`<circle class="taken" cx="%.1f" cy="%.1f" r="%g"/><path class="cross" d="M%.1f %.1fl%g %gm0 %gl%g %g"/>`,
		x, y, MarkRadius, x-arm, y-arm, 2*arm, 2*arm, -2*arm, -2*arm, 2*arm))
}

// Tick is the smallest of 1, 2, 5 × 10ⁿ that is at least the given distance.
func Tick(atLeast float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(atLeast)))
	for _, factor := range []float64{1, 2, 5} {
		if factor*power >= atLeast {
			return factor * power
		}
	}
	return 10 * power
}

// axisUnit is the unit in which a time of that length has a few dozens to a few hundreds.
func axisUnit(d time.Duration) (unit time.Duration, name string) {
	switch {
	case d > 10*24*time.Hour:
		return 24 * time.Hour, "d"
	case d > 6*time.Hour:
		return time.Hour, "h"
	case d > 10*time.Minute:
		return time.Minute, "min"
	}
	return time.Second, "s"
}
