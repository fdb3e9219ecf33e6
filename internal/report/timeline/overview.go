package timeline

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/wording"
)

// A picture with more rows of bars than this is an overview instead: a row per node, coloured by how much of it is in
// use.
const mostRows = 90

// Lengths of an overview.
const (
	overviewRows   = 400.0 // at most; beyond, a row is several nodes
	overviewHeight = 1500.0
	cellWidth      = 4.0
	gutter         = 92.0 // for the nodes' names
	nameHeight     = 13.0
	shades         = 8
)

// overview is a picture of many nodes: time from left to right, a row for each node or for some of them, and in it by
// shades how much is in use.
type overview struct {
	*drawing
	usage  *nodeUsage
	rows   []overviewRow
	height float64 // of a row
	cells  int
}

// overviewRow is one node, or some in the order of their names.
type overviewRow struct {
	name        string
	nodes       []*eventlog.NodeHistory
	capacity    []float64
	used        []float64
	preemptions []int // by cell
	pods        int
}

// newOverview lays an overview out.
func newOverview(d *drawing) *overview {
	o := &overview{drawing: d}
	d.scale.x0 += gutter
	o.cells = max(int((d.scale.x1-d.scale.x0)/cellWidth), 1)
	d.scale.x1 = d.scale.x0 + float64(o.cells)*cellWidth
	name := "cpu"
	if all := resources(d.history); len(all) > 0 {
		name = all[0]
	}
	o.usage = audit(d.history, name, d.scale.from, d.scale.to, o.cells)
	together := int(math.Ceil(float64(len(d.history.Nodes)) / overviewRows))
	rowOf := map[string]*overviewRow{}
	for i := 0; i < len(d.history.Nodes); i += max(together, 1) {
		nodes := d.history.Nodes[i:min(i+together, len(d.history.Nodes))]
		row := overviewRow{name: nodes[0].Name, nodes: nodes, capacity: make([]float64, o.cells), used: make([]float64, o.cells), preemptions: make([]int, o.cells)}
		for _, n := range nodes {
			a := o.usage.byNode[n.Name]
			for c := range o.cells {
				row.capacity[c] += a.capacity[c]
				row.used[c] += a.used[c]
			}
		}
		o.rows = append(o.rows, row)
	}
	for i := range o.rows {
		for _, n := range o.rows[i].nodes {
			rowOf[n.Name] = &o.rows[i]
		}
	}
	for _, pod := range d.history.Pods {
		row := rowOf[pod.Node]
		if row == nil {
			continue
		}
		row.pods++
		if pod.Preempted() && !pod.Disrupted.IsZero() {
			row.preemptions[o.cell(pod.Disrupted)]++
		}
	}
	o.height = math.Floor(min(max(overviewHeight/float64(len(o.rows)), 3), 14))
	return o
}

func (o *overview) cell(t time.Time) int {
	return min(max(int((o.scale.x(t)-o.scale.x0)/cellWidth), 0), o.cells-1)
}

// caption reports what is drawn.
func (o *overview) caption() string {
	what := "Each row is one node"
	if n := len(o.rows[0].nodes); n > 1 {
		what = fmt.Sprintf("Each row is %d nodes, in the order of their names", n)
	}
	cell := o.scale.to.Sub(o.scale.from) / time.Duration(o.cells)
	return fmt.Sprintf("%s, each cell %s of it: the stronger its colour, the more %s is held by pods, on the average of that time. A red mark is a preemption.",
		what, wording.Duration(cell), o.usage.resource)
}

func (o *overview) lanes(y float64) (bottom float64) {
	nameAfter := math.Inf(-1)
	var shadePaths [shades + 1]strings.Builder
	var absent, marks strings.Builder
	for i, row := range o.rows {
		top := y + float64(i)*(o.height+1)
		if top >= nameAfter {
			o.Put(`<text class="lanetitle small" x="%.1f" y="%.1f" text-anchor="end">%s</text>`, o.scale.x0-6, top+o.height/2+3.5, shorten(row.name, 15))
			nameAfter = top + nameHeight
		}
		for c := 0; c < o.cells; {
			shade, end := o.shade(&row, c), c+1
			for end < o.cells && o.shade(&row, end) == shade {
				end++
			}
			path := &absent
			if shade >= 0 {
				path = &shadePaths[shade]
			}
			fmt.Fprintf(path, "M%g %gh%gv%gh-%gz", o.scale.x0+float64(c)*cellWidth, top, float64(end-c)*cellWidth, o.height, float64(end-c)*cellWidth)
			c = end
		}
		for c, count := range row.preemptions {
			if count > 0 {
				fmt.Fprintf(&marks, "M%g %gv%g", o.scale.x0+float64(c)*cellWidth+cellWidth/2, top, o.height)
			}
		}
	}
	for shade := range shadePaths {
		if shadePaths[shade].Len() > 0 {
			o.Put(`<path class="shade%d" d="%s"/>`, shade, shadePaths[shade].String())
		}
	}
	if absent.Len() > 0 {
		o.Put(`<path class="absent" d="%s"/>`, absent.String())
	}
	if marks.Len() > 0 {
		o.Put(`<path class="mark" d="%s"/>`, marks.String())
	}
	for i := range o.rows {
		row := &o.rows[i]
		o.Put(`<rect class="over" x="%g" y="%.1f" width="%g" height="%g"><title>%s</title></rect>`,
			o.scale.x0, y+float64(i)*(o.height+1), o.scale.x1-o.scale.x0, o.height+1, row.describe(o.usage.resource))
	}
	return y + float64(len(o.rows))*(o.height+1)
}

// shade is how much of a row is in use in a cell: 0 nothing, 1 to shades parts of it; −1 when there is no node.
func (o *overview) shade(row *overviewRow, cell int) int {
	if row.capacity[cell] <= 0 {
		return -1
	}
	return int(math.Ceil(share(row.used[cell], row.capacity[cell])*shades - 1e-9))
}

func (r *overviewRow) describe(resource string) string {
	used, capacity, preempted := 0.0, 0.0, 0
	for c := range r.used {
		used += r.used[c]
		capacity += r.capacity[c]
		preempted += r.preemptions[c]
	}
	name := r.name
	if n := len(r.nodes); n > 1 {
		name = fmt.Sprintf("%s to %s", r.name, r.nodes[n-1].Name)
	}
	return fmt.Sprintf("%s: %.0f %% of %s in use, %s, %s", name, 100*share(used, capacity), resource,
		wording.Number(r.pods, "pod"), wording.Number(preempted, "preemption"))
}

func shorten(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return "…" + string(runes[len(runes)-most+1:])
	}
	return text
}
