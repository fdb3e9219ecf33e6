package timeline

import (
	"cmp"
	"fmt"
	"math"
	"strings"
)

// mostUsages is how many resources have a chart.
const mostUsages = 2

// usages are the ledgers that are drawn: of the scarcest resources, if pods report their requests.
func (d *drawing) usages() []*nodeUsage {
	if d.image {
		return nil // it shows where pods run, not how much
	}
	var all []*nodeUsage
	for _, name := range resources(d.history) {
		if len(all) < mostUsages && name != "memory" {
			all = append(all, audit(d.history, name, d.scale.from, d.scale.to, int(d.scale.x1-d.scale.x0)))
		}
	}
	return all
}

// usage is a chart of what is held of a resource: the classes with the most one upon the other, the rest above them.
func (d *drawing) usage(l *nodeUsage, y float64) {
	top := 0.0
	for _, capacity := range l.capacity {
		top = max(top, capacity)
	}
	d.Put(`<text class="charttitle" x="%g" y="%.1f">%s held by pods, by priority class</text>`, d.scale.x0, y-8, l.resource)
	d.Put(`<text class="tick" text-anchor="end" x="%.1f" y="%.1f">of %.4g</text>`, d.scale.x1, y-8, top)
	d.Put(`<rect class="chart" x="%g" y="%.1f" width="%g" height="%g" rx="5"/>`, d.scale.x0, y, d.scale.x1-d.scale.x0, chartHeight)
	below := make([]float64, len(l.used))
	for i, class := range l.byClass {
		above := make([]float64, len(below))
		for c := range above {
			above[c] = below[c] + class.used[c]
			if i >= jobColours-1 {
				above[c] = l.used[c] // all that are left
			}
		}
		name := class.class
		if i >= jobColours-1 && len(l.byClass) > jobColours {
			name = "others"
		}
		d.Put(`<path class="held job%d" d="%s"><title>%s</title></path>`, i%jobColours, d.band(below, above, top, y), orNone(name))
		below = above
		if i >= jobColours-1 {
			break
		}
	}
	d.Put(`<path class="capacity" d="%s"/>`, d.outline(l.capacity, top, y))
}

func orNone(class string) string {
	return cmp.Or(class, "no priority class")
}

// outline is a line of steps through values, from 0 to top.
func (d *drawing) outline(values []float64, top, y float64) string {
	var path strings.Builder
	last := math.NaN()
	for i, value := range values {
		x, height := d.scale.x0+float64(i), y+chartHeight*(1-share(value, top))
		switch {
		case i == 0:
			fmt.Fprintf(&path, "M%.0f %.1f", x, height)
		case height != last:
			fmt.Fprintf(&path, "H%.0fV%.1f", x, height)
		}
		last = height
	}
	fmt.Fprintf(&path, "H%.0f", d.scale.x0+float64(len(values)))
	return path.String()
}

// band is the area between two lines of steps.
func (d *drawing) band(below, above []float64, top, y float64) string {
	var back strings.Builder
	last := math.NaN()
	for i := len(below) - 1; i >= 0; i-- {
		x, height := d.scale.x0+float64(i)+1, y+chartHeight*(1-share(below[i], top))
		if height != last {
			fmt.Fprintf(&back, "H%.0fV%.1f", x, height)
		}
		last = height
	}
	fmt.Fprintf(&back, "H%.0fz", d.scale.x0)
	return d.outline(above, top, y) + back.String()
}
