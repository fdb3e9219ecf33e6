package forecast

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/placement"
)

// merged joins runs that have reached the same state by different choices: the same pods have stopped, and equivalent
// pods are on the same nodes, whichever pod is on which. All of them continue in the same way. The possible nodes of a
// pod are those of all joined runs.
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

// state describes a run by everything that affects what follows. Equivalent nodes may have exchanged places.
func (f *forecast) state(r *run) string {
	var lines []string
	for pod, fate := range r.fates {
		if fate.bound == "" && r.cluster.Nominated(pod) == "" {
			lines = append(lines, f.kindOf(pod, fate)+" "+string(fate.state))
		}
	}
	for node, changes := range f.changes(r) {
		lines = append(lines, fmt.Sprint(f.symmetry.look(node), changes))
	}
	slices.Sort(lines)
	for _, pod := range r.competitors {
		lines = append(lines, "waits "+pod.String())
	}
	var queues []string // any of them may be next
	for _, queue := range r.queues {
		var kinds []string
		for _, pod := range queue {
			kinds = append(kinds, f.kindOf(pod, r.fates[pod]))
		}
		queues = append(queues, fmt.Sprintf("and then %q", kinds))
	}
	slices.Sort(queues)
	lines = append(lines, queues...)
	for _, view := range r.views {
		lines = append(lines, view.String())
	}
	lines = append(lines, r.cluster.Claims())
	return strings.Join(lines, "\n")
}

// changes are the changes of nodes in a run, in a canonical order.
func (f *forecast) changes(r *run) map[string][]string {
	changes := map[string][]string{}
	for pod, fate := range r.fates {
		if fate.bound != "" {
			changes[fate.bound] = append(changes[fate.bound], "has "+f.kindOf(pod, fate))
		} else if node := r.cluster.Nominated(pod); node != "" {
			changes[node] = append(changes[node], "keeps room for "+f.kindOf(pod, fate))
		}
	}
	for _, l := range r.seated {
		changes[l.node] = append(changes[l.node], "has "+l.pod.String())
	}
	for _, v := range r.lost {
		changes[v.node] = append(changes[v.node], fmt.Sprintf("lost %s %t %t", f.lookOf(v.pod), v.stopped, v.queue))
	}
	for _, of := range changes {
		slices.Sort(of)
	}
	return changes
}

// lookOf is equal for pods that the scheduler does not distinguish.
func (f *forecast) lookOf(pod *placement.Pod) string {
	if _, ok := f.planned[pod]; ok {
		return f.kindOf(pod, nil)
	}
	return f.symmetry.podLook(pod)
}

// distinct returns one of each set of choices that differ only in which of several equivalent nodes or pods they take.
func (f *forecast) distinct(r *run, choices []choice) []choice {
	if len(choices) == 1 {
		return choices
	}
	changes := f.changes(r)
	seen := map[string]bool{}
	var distinct []choice
	for _, c := range choices {
		var victims []string
		for _, v := range c.victims {
			victims = append(victims, f.lookOf(v))
		}
		slices.Sort(victims)
		key := fmt.Sprint(f.symmetry.look(c.node), changes[c.node], victims, c.view)
		if !seen[key] {
			seen[key] = true
			distinct = append(distinct, c)
		}
	}
	return distinct
}

// kindOf is equal for equivalent pods: planned pods by their part and role, and replacements of victims by their owner.
func (f *forecast) kindOf(pod *placement.Pod, fate *fate) string {
	if p, ok := f.planned[pod]; ok {
		word, _, _ := strings.Cut(p.Role, " ")
		return fmt.Sprintf("%d %s %d %t %v", p.job, word, pod.Priority, p.Optional, claimNames(pod.Object()))
	}
	if fate == nil {
		return pod.String()
	}
	return fmt.Sprintf("%s %d %t", ownerOf(pod.Object()), pod.Priority, fate.instead != nil)
}

// join adds the results of another run in the same state.
func (r *run) join(other *run) {
	r.cut = r.cut || other.cut
	for pod, theirs := range other.fates {
		ours := r.fates[pod]
		if ours == nil {
			continue // the replacement of another pod that is equivalent
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
		} else {
			r.alsoPossible(v) // an equivalent pod stops here
		}
	}
	for _, v := range other.others {
		r.alsoPossible(v)
	}
	slices.SortStableFunc(r.others, func(a, b victim) int { return cmp.Compare(a.node, b.node) })
}
