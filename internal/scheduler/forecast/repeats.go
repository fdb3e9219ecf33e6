package forecast

import (
	"fmt"
	"slices"
	"strings"
)

// A pod that has been evicted and created again may be evicted again, for the same pod: kube-scheduler does not apply the
// anti-affinity of a pod that waits for room to pods without affinity, so that one of those may take the room again
// and again. Such a run comes back to where it was.

// lose notes that a pod stops. One that has stopped for the same reason before counts once.
func (r *run) lose(v victim) {
	before := slices.IndexFunc(r.lost, func(l victim) bool {
		return l.stopped && l.pod == v.pod && l.node == v.node && l.job == v.job && l.by == v.by && !l.queue && !l.failed
	})
	if before >= 0 {
		r.repeats = true
		v.chosen = v.chosen || r.lost[before].chosen
		r.lost = slices.Delete(r.lost, before, before+1)
	}
	r.lost = append(r.lost, v)
}

// onward are the runs without those that have come back to where a run was before, and say nothing that it did not. It
// keeps one if none is followed otherwise.
func (s splitter) onward(runs []*run, seen map[string]bool, others int) (onward []*run) {
	for i, r := range runs {
		back := r.repeats && !first(seen, s.history(r))
		if back && i == len(runs)-1 && len(onward)+others == 0 {
			r.cut, r.queues, back = true, nil, false
		}
		if back {
			r.drop()
			continue
		}
		onward = append(onward, r)
	}
	return onward
}

// first reports whether a text is seen for the first time.
func first(seen map[string]bool, text string) bool {
	before := seen[text]
	seen[text] = true
	return !before
}

// history is the state of a run with all that merging runs of one state would join.
func (f *forecast) history(r *run) string {
	var lines []string
	for pod, its := range r.outcomes {
		lines = append(lines, fmt.Sprintf("%p %s %v %d %v", pod, its.bound, its.nodes, its.others, positions(its.after)))
	}
	slices.Sort(lines)
	return strings.Join(append(lines, fmt.Sprint(r.cut, positions(r.lost), positions(r.others)), f.state(r)), "\n")
}

// positions are victims and why they stop, in an order that is the same for the same.
func positions(victims []victim) []string {
	texts := make([]string, len(victims))
	for i, v := range victims {
		texts[i] = fmt.Sprintf("%p %s %d %s %t %t", v.pod, v.node, v.job, v.by, v.chosen, v.stopped)
	}
	slices.Sort(texts)
	return texts
}
