package forecast

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

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
	unique := runs[:0]
	for _, r := range runs {
		key := f.state(r)
		if same := first[key]; same != nil {
			same.join(r)
			r.drop()
			continue
		}
		first[key] = r
		unique = append(unique, r)
	}
	return unique
}

// state describes a run by everything that affects what follows. Equivalent nodes may have exchanged places. It is
// computed after every attempt of the scheduler, and so consists of numbers instead of the texts that they stand for.
func (f *forecast) state(r *run) string {
	var waiting []uint64
	for pod, outcome := range r.outcomes {
		if outcome.bound == "" && r.cluster.Nominated(pod) == "" {
			state := string(outcome.state)
			if outcome.gone {
				state = "gone"
			}
			waiting = append(waiting, uint64(f.kindOf(pod, outcome))<<32|uint64(f.numbers.of(state)))
		}
	}
	slices.Sort(waiting)
	var nodes [][]uint64
	for node, changes := range f.changes(r) {
		nodes = append(nodes, append([]uint64{uint64(f.symmetry.look(node))}, changes...))
	}
	slices.SortFunc(nodes, slices.Compare)
	var competitors []uint64
	for _, pod := range r.competitors {
		competitors = append(competitors, uint64(f.kindOf(pod, nil)))
	}
	var queues [][]uint64 // any of them may be next
	for _, queue := range r.queues {
		var kinds []uint64
		for _, pod := range queue {
			kinds = append(kinds, uint64(f.kindOf(pod, r.outcomes[pod])))
		}
		queues = append(queues, kinds)
	}
	slices.SortFunc(queues, slices.Compare)
	var rest []uint64
	for _, view := range r.views {
		rest = append(rest, uint64(f.numbers.of(view.String())))
	}
	rest = append(rest, uint64(f.numbers.of(r.cluster.Claims())))
	rest = append(rest, uint64(len(r.later)))
	for _, step := range r.later {
		rest = append(rest, uint64(step.job)) //nolint:gosec // It is an index.
	}
	for _, text := range r.endsOf() {
		rest = append(rest, uint64(f.numbers.of(text)))
	}

	var text []byte
	for _, lists := range [][][]uint64{{waiting}, nodes, {competitors}, queues, {rest}} {
		text = binary.AppendUvarint(text, uint64(len(lists)))
		for _, list := range lists {
			text = binary.AppendUvarint(text, uint64(len(list)))
			for _, number := range list {
				text = binary.AppendUvarint(text, number)
			}
		}
	}
	return string(text)
}

// numbers number texts: equal texts have equal numbers.
type numbers map[string]uint32

func (n numbers) of(text string) uint32 {
	number, known := n[text]
	if !known {
		number = uint32(len(n)) //nolint:gosec // There are not that many texts.
		n[text] = number
	}
	return number
}

// The kinds of changes of a node; the number of a pod's kind or look follows in the bits above.
const (
	hasPod uint64 = iota
	keepsRoom
	isSeat
	lostPod // and the flags of a victim, and the number of the job that it stops for

	victimStopped uint64 = 1 << 2
	victimOfQueue uint64 = 1 << 3
	jobShift             = 4
	changeBits           = 24
)

// changes are the changes of nodes in a run, in a canonical order.
func (f *forecast) changes(r *run) map[string][]uint64 {
	changes := map[string][]uint64{}
	add := func(node string, kind uint64, pod uint32) {
		changes[node] = append(changes[node], uint64(pod)<<changeBits|kind)
	}
	for pod, outcome := range r.outcomes {
		if outcome.bound != "" {
			add(outcome.bound, hasPod, f.kindOf(pod, outcome))
		} else if node := r.cluster.Nominated(pod); node != "" {
			add(node, keepsRoom, f.kindOf(pod, outcome))
		}
	}
	for _, l := range r.scheduled {
		add(l.node, isSeat, f.kindOf(l.pod, nil))
	}
	for _, v := range r.lost {
		kind := lostPod | uint64(v.job-noJob)<<jobShift //nolint:gosec // It is an index, or noJob.
		if v.stopped {
			kind |= victimStopped
		}
		if v.queue {
			kind |= victimOfQueue
		}
		add(v.node, kind, f.lookOf(v.pod))
	}
	for _, of := range changes {
		slices.Sort(of)
	}
	return changes
}

// lookOf is equal for pods that the scheduler does not distinguish.
func (f *forecast) lookOf(pod *placement.Pod) uint32 {
	if _, ok := f.planned[pod]; ok {
		return f.kindOf(pod, nil)
	}
	number, known := f.lookNumbers[pod]
	if !known {
		number = f.numbers.of(f.symmetry.podLook(pod))
		f.lookNumbers[pod] = number
	}
	return number
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
		var victims []uint32
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

// kindOf is equal for equivalent pods: planned pods by their sort, and replacements of victims by their owner.
func (f *forecast) kindOf(pod *placement.Pod, outcome *podOutcome) uint32 {
	key := kindKey{pod: pod, hasOutcome: outcome != nil, replacement: outcome != nil && outcome.instead != nil}
	number, known := f.kindNumbers[key]
	if !known {
		number = f.numbers.of(f.describeKind(key))
		f.kindNumbers[key] = number
	}
	return number
}

// kindKey is what a pod's kind depends on.
type kindKey struct {
	pod                     *placement.Pod
	hasOutcome, replacement bool
}

func (f *forecast) describeKind(of kindKey) string {
	if p, ok := f.planned[of.pod]; ok {
		return fmt.Sprintf("%d %s %d %t %v", p.job, sortOf(p.Role, of.pod.Object()), of.pod.Priority, p.Optional, claimNames(of.pod.Object()))
	}
	if !of.hasOutcome {
		return "pod " + of.pod.String()
	}
	return fmt.Sprintf("%s %d %t", ownerOf(of.pod.Object()), of.pod.Priority, of.replacement)
}

// join adds the results of another run in the same state.
func (r *run) join(other *run) {
	r.cut = r.cut || other.cut
	for pod, theirs := range other.outcomes {
		ours := r.outcomes[pod]
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
