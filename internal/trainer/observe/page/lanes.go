package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/picture"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/history"
	"github.com/elastic-training/terraform-provider-elastic/internal/wording"
)

const (
	mostLanes   = 32    // with more workers in all, those that did not live at the same time share one
	lanesHeight = 560.0 // of all lanes, where there are many
	laneHeight  = 22.0
	lowestLane  = 5.0
	laneGap     = 3.0
	digitWidth  = 7.0  // of a worker's number, an upper estimate
	nameHeight  = 14.0 // of a worker's name, which must not cover another's
)

// lanes draws a lane for each worker, in the order of their numbers.
func (d *drawing) lanes(y float64) (bottom float64) {
	rows := rowsOf(d.Workers)
	if len(rows) == 0 {
		rows = [][]*history.WorkerHistory{nil}
	}
	height := math.Max(lowestLane, math.Min(laneHeight, math.Floor(lanesHeight/float64(len(rows)))-laneGap))
	bottom = y + float64(len(rows))*(height+laneGap)
	for i := range rows {
		d.Put(`<rect class="lane" x="%g" y="%.1f" width="%.1f" height="%.1f" rx="3"/>`, d.x0, y+float64(i)*(height+laneGap), d.x1-d.x0, height)
	}
	d.bands(y, bottom-y-laneGap)
	free := math.Inf(-1)
	for i, row := range rows {
		top := y + float64(i)*(height+laneGap)
		if name, gone := d.name(row); name != "" && top+height/2 >= free {
			class := "gutter"
			if gone {
				class = "gutter gone"
			}
			d.Put(`<text class="%s" text-anchor="end" x="%.1f" y="%.1f">%s</text>`, class, d.x0-8, top+height/2+4, name)
			free = top + height/2 + nameHeight
		}
		for _, life := range row {
			d.worker(life, top, height)
		}
		for _, life := range row {
			d.interruptions(life, top+height/2)
		}
	}
	return bottom
}

// rowsOf puts each worker into a lane of its own, or where these would be too many behind one that had gone by then.
func rowsOf(lives []*history.WorkerHistory) [][]*history.WorkerHistory {
	sorted := slices.SortedFunc(slices.Values(lives), func(a, b *history.WorkerHistory) int { return cmp.Compare(a.Worker, b.Worker) })
	var rows [][]*history.WorkerHistory
	if len(sorted) <= mostLanes {
		for _, life := range sorted {
			rows = append(rows, []*history.WorkerHistory{life})
		}
		return rows
	}
	slices.SortStableFunc(sorted, func(a, b *history.WorkerHistory) int { return cmp.Compare(a.From(), b.From()) })
	for _, life := range sorted {
		i := slices.IndexFunc(rows, func(row []*history.WorkerHistory) bool {
			last := row[len(row)-1]
			return last.Ended && last.To() <= life.From()
		})
		if i < 0 {
			rows, i = append(rows, nil), len(rows)
		}
		rows[i] = append(rows[i], life)
	}
	return rows
}

// name is what stands before a lane: the worker's number, or of several that share it as many of the newest as there is
// room for.
func (d *drawing) name(row []*history.WorkerHistory) (name string, gone bool) {
	if len(row) == 0 {
		return "", false
	}
	last := row[len(row)-1]
	name = strconv.Itoa(last.Worker)
	if len(row) == 1 && !d.narrow {
		return "worker " + name, last.Ended
	}
	room := int((d.x0 - 8) / digitWidth)
	for _, life := range slices.Backward(row[:len(row)-1]) {
		longer := strconv.Itoa(life.Worker) + ", " + name
		if len(longer) > room {
			if len(name)+len("… ") <= room {
				name = "… " + name
			}
			break
		}
		name = longer
	}
	return name, last.Ended
}

func (d *drawing) worker(l *history.WorkerHistory, y, height float64) {
	d.Put(`<g class="job0"><title>%s</title>`, describe(l))
	for i, span := range l.Intervals {
		to := span.To
		if i == len(l.Intervals)-1 && !l.Ended && !d.Over {
			to = d.now
		}
		x := d.x(span.From)
		width := math.Max(leastWidth, d.x(to)-x)
		radius := math.Min(3, width/3)
		if span.State == history.Pending {
			d.Put(`<rect fill="url(#%s-pending)" x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="%.1f"/>
<rect class="pendingedge" x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="%.1f"/>`,
				d.id, x, y, width, height, radius, x+0.5, y+0.5, math.Max(0.5, width-1), height-1, radius)
			continue
		}
		d.Put(`<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="%.1f"/>`, string(span.State), x, y, width, height, radius)
	}
	d.Put(`</g>`)
}

// interruptions lie over all bars of their lane: the next bar begins where they are.
func (d *drawing) interruptions(l *history.WorkerHistory, y float64) {
	for _, mark := range l.Interruptions {
		x := math.Min(math.Max(d.x(mark.At), d.x0+7), d.x1-7)
		drawn := lostMark(x, y)
		if mark.Kind == history.Preempted {
			drawn = picture.Preempted(x, y)
		}
		d.Put(`<g><title>%s</title>%s</g>`, interruptionText(l, mark), drawn)
	}
}

// describe is a worker's life in a sentence, for the tooltip.
func describe(l *history.WorkerHistory) string {
	text := fmt.Sprintf("worker %d, from %s", l.Worker, wording.Duration(l.From()))
	if l.Ended {
		text += " to " + wording.Duration(l.To())
	} else {
		text += ", " + history.Describe(l.State())
	}
	if l.Reason != "" && !l.Ended {
		text += ": " + l.Reason
	}
	return text + fmt.Sprintf("; %s taken from it", wording.Number(int(l.Gradients), "gradient"))
}

func interruptionText(l *history.WorkerHistory, m history.Interruption) string {
	text := fmt.Sprintf("worker %d was %s after %s", l.Worker, m.Kind, wording.Duration(m.At))
	if m.Kind == history.Failed {
		text = fmt.Sprintf("worker %d failed after %s", l.Worker, wording.Duration(m.At))
	}
	if m.Reason != "" {
		text += ": " + m.Reason
	}
	return text
}

// lifetime is how long a worker was there.
func (v view) lifetime(l *history.WorkerHistory) time.Duration {
	if l.Ended || v.Over {
		return l.To() - l.From()
	}
	return v.now - l.From()
}
