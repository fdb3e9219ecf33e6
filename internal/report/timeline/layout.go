package timeline

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/picture"
	"github.com/elastic-training/terraform-provider-elastic/internal/wording"
)

// All lengths are in the SVG's user units, which are CSS pixels at the width that the layout was made for.
const (
	rowHeight   = 22.0
	rowGap      = 4.0
	laneTitle   = 20.0 // above a lane's rows
	laneGap     = 10.0
	minBar      = 6.0 // so that a wait of 40 ms is seen
	charWidth   = 6.4 // of the labels' font, an upper estimate
	labelMargin = 6.0
	markRadius  = picture.MarkRadius
)

// scale maps times to x.
type scale struct {
	from, to time.Time
	x0, x1   float64
}

func (s scale) x(t time.Time) float64 {
	switch {
	case t.Before(s.from):
		t = s.from
	case t.After(s.to):
		t = s.to
	}
	return s.x0 + (s.x1-s.x0)*float64(t.Sub(s.from))/float64(s.to.Sub(s.from))
}

// extent is the time from the stage that made the first pod to a little after the last thing that pods or masters did:
// what happens before and after (calibration, the undisturbed run) is not the cluster's. A simulation begins with its
// log.
func extent(h *eventlog.History, simulated bool) (from, to time.Time, ok bool) {
	for _, pod := range h.Pods {
		if from.IsZero() || pod.Created.Before(from) {
			from = pod.Created
		}
		for _, t := range []time.Time{pod.Created, pod.Bound, pod.Running, pod.Ended} {
			if t.After(to) {
				to = t
			}
		}
	}
	for _, job := range h.Jobs {
		if last := job.Last().Time; last.After(to) {
			to = last
		}
	}
	if from.IsZero() || !to.After(from) {
		return from, to, false
	}
	first := from
	for _, stage := range h.Stages {
		if !stage.Time.After(first) {
			from = stage.Time
		}
	}
	margin := to.Sub(from) / 60
	if simulated {
		return h.Start, to.Add(margin), true
	}
	return from.Add(-margin), to.Add(margin), true
}

// lane is a band of the picture: a node, or the place where pods wait for room.
type lane struct {
	title   string
	waiting bool
	bars    []bar
	rows    int
	depth   int          // the domains of a topology that it is in
	heading bool         // it only names a domain, above the nodes in it
	gone    [][2]float64 // from and to of the times during which a node was dead
}

func (l lane) height() float64 { return laneTitle + float64(l.rows)*(rowHeight+rowGap) }

// bar is a pod's time in a lane. x2 is the end of the drawn bar, running where its running part begins (x2 when there
// is none), leaving where it was terminated (x2 when it never was).
type bar struct {
	job, role       string
	title           string // the tooltip
	taken           bool   // it was preempted, or the scenario took it away
	row             int
	x1, x2          float64
	running         float64
	leaving         float64
	label           string
	labelX          float64
	labelInside     bool
	labelAnchorsEnd bool
}

// lay distributes the pods' pods over lanes: one for waiting for each queue and for room, then one per node in the
// nodes' order.
func lay(h *eventlog.History, s scale) []lane {
	lanes := layQueues(h, s)
	waiting := lane{title: "waiting for capacity", waiting: true}
	away := takenAway(h)
	nodes := map[string]*lane{}
	var order []string
	addNode := func(name, title string) {
		if nodes[name] == nil {
			nodes[name] = &lane{title: title}
			order = append(order, name)
		}
	}
	for _, node := range h.Nodes {
		title := fmt.Sprintf("%s · %s CPU", node.Name, cores(node.CPU))
		for _, name := range slices.Sorted(maps.Keys(node.Other)) {
			title += fmt.Sprintf(" · %s %s", node.Other[name], name)
		}
		addNode(node.Name, title)
	}
	for _, pod := range h.Pods {
		if wait, waited := pod.Waited(h.End); waited {
			end := pod.EndedBy(s.to)
			if !pod.Bound.IsZero() {
				end = pod.Bound
			}
			label := fmt.Sprintf("%s waited %s", shortName(pod), wording.Duration(wait))
			waiting.bars = append(waiting.bars, place(s, barOf(pod, s, away), pod.Created, end, time.Time{}, time.Time{}, label))
		}
		if pod.Bound.IsZero() {
			continue
		}
		addNode(pod.Node, pod.Node)
		running := pod.Running
		if running.IsZero() {
			running = pod.EndedBy(s.to)
		}
		nodes[pod.Node].bars = append(nodes[pod.Node].bars,
			place(s, barOf(pod, s, away), pod.Bound, pod.EndedBy(s.to), running, pod.Deleting, shortName(pod)))
	}
	if len(waiting.bars) > 0 {
		lanes = append(lanes, waiting)
	}
	for _, name := range order {
		nodes[name].gone = append(deaths(h, name, s), absences(h, name, s)...)
	}
	lanes = append(lanes, byDomain(h, order, nodes)...)
	for i := range lanes {
		if !lanes[i].heading {
			lanes[i].rows = stack(lanes[i].bars)
		}
	}
	return lanes
}

// byDomain puts the nodes of a domain below each other, and its name above them. Domains are in the order of their
// first nodes.
func byDomain(h *eventlog.History, order []string, nodes map[string]*lane) []lane {
	domains := map[string][]eventlog.Domain{}
	for _, node := range h.Nodes {
		domains[node.Name] = node.Domains
	}
	rank := map[string]int{}
	ranks := func(name string) []int {
		all, path := []int{}, ""
		for _, d := range domains[name] {
			path += d.Level + "=" + d.Name + ","
			if _, seen := rank[path]; !seen {
				rank[path] = len(rank)
			}
			all = append(all, rank[path])
		}
		return all
	}
	for _, name := range order {
		ranks(name)
	}
	slices.SortStableFunc(order, func(a, b string) int { return slices.Compare(ranks(a), ranks(b)) })
	var lanes []lane
	var before []eventlog.Domain
	for _, name := range order {
		in := domains[name]
		same := 0
		for same < len(in) && same < len(before) && in[same] == before[same] {
			same++
		}
		for depth, d := range in[same:] {
			lanes = append(lanes, lane{title: levelName(d.Level) + " " + d.Name, depth: same + depth, heading: true})
		}
		before = in
		nodes[name].depth = len(in)
		lanes = append(lanes, *nodes[name])
	}
	return lanes
}

// levelName is the short name of a level: "rack" of cloud.provider.com/topology-rack.
func levelName(label string) string {
	return strings.TrimPrefix(label[strings.LastIndexByte(label, '/')+1:], "topology-")
}

// minQueued is the shortest wait in a queue that is drawn: a workload that finds quota waits some milliseconds too.
const minQueued = 500 * time.Millisecond

// layQueues has a lane per queue, with the times during which its workloads waited for quota.
func layQueues(h *eventlog.History, s scale) []lane {
	queues := map[string]*lane{}
	var order []string
	for _, workload := range h.Workloads {
		for _, interval := range workload.Intervals {
			end := interval.EndedBy(s.to)
			if interval.Admitted || end.Sub(interval.From) < minQueued {
				continue
			}
			if queues[workload.Queue] == nil {
				queues[workload.Queue] = &lane{title: "waiting for quota in queue " + workload.Queue, waiting: true}
				order = append(order, workload.Queue)
			}
			label := fmt.Sprintf("%s waited %s", workload.Title(), wording.Duration(end.Sub(interval.From)))
			waited := bar{job: h.JobOf(workload), title: describeWait(workload, interval, s.from)}
			queues[workload.Queue].bars = append(queues[workload.Queue].bars,
				place(s, waited, interval.From, end, time.Time{}, time.Time{}, label))
		}
	}
	lanes := []lane{}
	for _, name := range order {
		lanes = append(lanes, *queues[name])
	}
	return lanes
}

// deaths are the times, as x, between a node's end and its return.
func deaths(h *eventlog.History, node string, s scale) [][2]float64 {
	var dead [][2]float64
	var since time.Time
	for _, fault := range h.Faults {
		switch {
		case fault.Target != node:
		case fault.Kind == eventlog.NodeStopped && since.IsZero():
			since = fault.Time
		case fault.Kind == eventlog.NodeStarted && !since.IsZero():
			dead, since = append(dead, [2]float64{s.x(since), s.x(fault.Time)}), time.Time{}
		}
	}
	if !since.IsZero() {
		dead = append(dead, [2]float64{s.x(since), s.x1})
	}
	return dead
}

// absences are the times, as x, during which a node that had been there was not.
func absences(h *eventlog.History, node string, s scale) [][2]float64 {
	var absent [][2]float64
	for _, pod := range h.Nodes {
		if pod.Name != node {
			continue
		}
		for i, span := range pod.Present {
			switch {
			case span.To.IsZero():
			case i+1 < len(pod.Present):
				absent = append(absent, [2]float64{s.x(span.To), s.x(pod.Present[i+1].From)})
			default:
				absent = append(absent, [2]float64{s.x(span.To), s.x1})
			}
		}
	}
	return absent
}

// takenAway are the names of the pods that the scenario deleted.
func takenAway(h *eventlog.History) map[string]bool {
	away := map[string]bool{}
	for _, fault := range h.Faults {
		if fault.Kind == eventlog.PodDeleted || fault.Kind == eventlog.PodKilled {
			away[fault.Target] = true
		}
	}
	return away
}

// barOf is a bar of a pod, without a place.
func barOf(pod *eventlog.PodHistory, s scale, away map[string]bool) bar {
	return bar{job: pod.Job, role: pod.Role, title: describe(pod, s.from), taken: pod.Preempted() || away[pod.Name]}
}

// place gives a bar's time in a lane its x and finds room for its label: inside the bar, behind it, or before it.
func place(s scale, b bar, from, to, running, leaving time.Time, label string) bar {
	b.x1, b.label = s.x(from), label
	b.x2 = max(s.x(to), b.x1+minBar)
	b.running, b.leaving = b.x2, b.x2
	if !running.IsZero() {
		b.running = min(s.x(running), b.x2)
	}
	if !leaving.IsZero() && leaving.Before(to) {
		b.leaving = max(b.x1, min(s.x(leaving), b.x2))
	}
	width := float64(utf8.RuneCountInString(label)) * charWidth
	behind := b.x2 + labelMargin + b.endMark()
	inside := b.x1 + labelMargin
	if !running.IsZero() {
		inside = b.running + labelMargin // on the solid part, where it is read best
	}
	switch {
	case inside+width+labelMargin+b.endMark() <= b.x2:
		b.labelInside, b.labelX = true, inside
	case behind+width <= s.x1:
		b.labelX = behind
	default:
		b.labelX, b.labelAnchorsEnd = b.x1-labelMargin, true
	}
	return b
}

// endMark is how far the mark at the bar's end reaches to either side.
func (b bar) endMark() float64 {
	if b.taken {
		return markRadius
	}
	return 0
}

// occupied is the horizontal room of the bar with its label. The mark of one that was taken takes none: it is drawn
// over what follows, which is the pod that took the room.
func (b bar) occupied() (from, to float64) {
	width := float64(utf8.RuneCountInString(b.label)) * charWidth
	switch {
	case b.labelInside:
		return b.x1, b.x2
	case b.labelAnchorsEnd:
		return b.labelX - width, b.x2
	}
	return b.x1, b.labelX + width
}

// stack gives each bar the first row where it overlaps nothing, and says how many rows there are; at least one.
func stack(bars []bar) int {
	slices.SortStableFunc(bars, func(a, b bar) int { return cmp.Compare(a.x1, b.x1) })
	ends := []float64{0}
	for i := range bars {
		from, to := bars[i].occupied()
		row := slices.IndexFunc(ends, func(end float64) bool { return end <= from })
		if row < 0 {
			row = len(ends)
			ends = append(ends, 0)
		}
		bars[i].row, ends[row] = row, to
	}
	return len(ends)
}

// shortName is a pod's name on its bar, whose colour says which job it is of; a queued task is known by that name
// alone.
func shortName(pod *eventlog.PodHistory) string {
	if pod.Role == "task" {
		return pod.Job
	}
	return wording.Pod(pod.Job, pod.Role, pod.Name)
}

// cores is a CPU quantity in cores where it is in thousandths ("3920m" is 3.92).
func cores(quantity string) string {
	if milli, ok := strings.CutSuffix(quantity, "m"); ok {
		var n float64
		if _, err := fmt.Sscanf(milli, "%g", &n); err == nil {
			return fmt.Sprintf("%g", n/1000)
		}
	}
	return quantity
}
