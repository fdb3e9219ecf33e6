package forecast

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduling/placement"
)

// merged joins runs that have come to the same state by different choices: the same pods have stopped, and pods that are
// alike are on the same nodes, whichever is on which. What happens next is the same in all of them. The pods' possible
// nodes are those of all runs that are joined.
func (f *forecast) merged(runs []*run) []*run {
	if len(runs) == 1 {
		return runs
	}
	first := make(map[string]*run, len(runs))
	kept := runs[:0]
	for _, r := range runs {
		key := f.state(r)
		if same := first[key]; same != nil {
			same.join(r)
			continue
		}
		first[key] = r
		kept = append(kept, r)
	}
	return kept
}

// state describes a run by what decides about all that follows.
func (f *forecast) state(r *run) string {
	var lines []string
	for pod, fate := range r.fates {
		lines = append(lines, fmt.Sprintf("%s %s %s %s", f.kindOf(pod, fate), fate.state, fate.bound, r.cluster.Nominated(pod)))
	}
	for _, v := range r.lost {
		lines = append(lines, fmt.Sprintf("lost %s %t %t", f.podName(v.pod), v.stopped, v.queue))
	}
	for _, pod := range r.competitors {
		lines = append(lines, "waits "+pod.String())
	}
	for _, pod := range r.queue {
		lines = append(lines, "next "+f.kindOf(pod, r.fates[pod]))
	}
	slices.Sort(lines)
	for _, view := range r.views {
		lines = append(lines, view.String())
	}
	return strings.Join(lines, "\n")
}

// kindOf is equal for pods that are alike: those of one part of a job by their role, and those made again by their owner.
func (f *forecast) kindOf(pod *placement.Pod, fate *fate) string {
	if p, ok := f.planned[pod]; ok {
		word, _, _ := strings.Cut(p.Role, " ")
		return fmt.Sprintf("%d %s %d %t", p.job, word, pod.Priority, p.Optional)
	}
	if fate == nil {
		return pod.String()
	}
	return fmt.Sprintf("%s %d %t", ownerOf(pod.Object()), pod.Priority, fate.instead != nil)
}

// join takes over what another run that is in the same state says of pods.
func (r *run) join(other *run) {
	r.cut = r.cut || other.cut
	for pod, theirs := range other.fates {
		ours := r.fates[pod]
		if ours == nil {
			continue // made again in the place of another pod that is alike
		}
		for _, node := range theirs.nodes {
			if !slices.Contains(ours.nodes, node) {
				ours.nodes = append(ours.nodes, node)
			}
		}
		for _, v := range theirs.after {
			if !slices.ContainsFunc(ours.after, func(a victim) bool { return a.pod == v.pod }) {
				ours.after = append(ours.after, v)
			}
		}
	}
	for _, v := range other.lost {
		if at := slices.IndexFunc(r.lost, func(l victim) bool { return l.pod == v.pod }); at >= 0 {
			r.lost[at].chosen = r.lost[at].chosen || v.chosen
		}
	}
	for _, v := range other.others {
		if len(r.others) < maxPossible && !slices.ContainsFunc(r.others, func(o victim) bool { return o.pod == v.pod }) {
			r.others = append(r.others, v)
		}
	}
	slices.SortStableFunc(r.others, func(a, b victim) int { return cmp.Compare(a.node, b.node) })
}
