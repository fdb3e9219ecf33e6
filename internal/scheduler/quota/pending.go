package quota

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// queue is a ClusterQueue: its place in the tree of cohorts, those who hold its quota and those who wait for it.
type queue struct {
	node
	spec     kueue.ClusterQueueSpec
	selector labels.Selector
	groups   []resourceGroup
	// active: it admits workloads.
	active bool
	// generation grows when quota may have become free or changed; progress in the scan of flavors is void then.
	generation int64

	places *places
	usages *usages
	// ordersByUsage is usageBased as it was when the queue was made: Kueue does not take a change over.
	ordersByUsage bool
	// reserved are the workloads that hold quota, in the order in which victims are taken.
	reserved []*workload

	// waiting is the heap of those that are to be tried; inadmissible are those that were tried in vain or are held back.
	// A pending workload is in one of the two, or is none of the queue's business (inactive, gated, LocalQueue stopped).
	waiting      waitingHeap
	inadmissible map[*workload]bool
	// alike holds the shapes that were found not to fit since the last retry: others of that shape become inadmissible
	// untried (Kueue's SchedulingEquivalenceHashing; BestEffortFIFO only).
	alike map[string]bool
	// preemptor is the last workload that issued preemptions; under BestEffortFIFO it stays ahead of all others until
	// it leaves the queue.
	preemptor *workload
}

func newQueue(name string) *queue {
	q := &queue{active: true, inadmissible: map[*workload]bool{}, alike: map[string]bool{}}
	q.name = name
	q.waiting.queue = q
	return q
}

// resourceGroup is a set of resources that get one flavor together.
type resourceGroup struct {
	covers  []string
	flavors []string
}

// configure takes over a spec.
func (q *queue) configure(spec kueue.ClusterQueueSpec, selector labels.Selector) {
	q.spec, q.selector = spec, selector
	q.weight = weightOf(spec.FairSharing)
	q.groups = nil
	for _, g := range spec.ResourceGroups {
		var group resourceGroup
		for _, r := range g.CoveredResources {
			group.covers = append(group.covers, string(r))
		}
		for _, f := range g.Flavors {
			group.flavors = append(group.flavors, string(f.Name))
		}
		q.groups = append(q.groups, group)
	}
}

// group finds the group that covers a resource; nil: none does.
func (q *queue) group(resource string) *resourceGroup {
	for i := range q.groups {
		if slices.Contains(q.groups[i].covers, resource) {
			return &q.groups[i]
		}
	}
	return nil
}

func (q *queue) offers(flavor string) bool {
	return slices.ContainsFunc(q.groups, func(g resourceGroup) bool { return slices.Contains(g.flavors, flavor) })
}

func (q *queue) requires(check string) bool {
	_, named := q.checks()[check]
	return named
}

func (q *queue) stopped() bool { return q.spec.StopPolicy != nil && *q.spec.StopPolicy != kueue.None }

func (q *queue) drains() bool {
	return q.spec.StopPolicy != nil && *q.spec.StopPolicy == kueue.HoldAndDrain
}

func (q *queue) strict() bool { return q.spec.QueueingStrategy == kueue.StrictFIFO }

// before is the order of the queue: what the LocalQueues have used, if it counts, the preemptor whose victims are leaving,
// then higher priority, older, smaller UID.
func (q *queue) before(a, b *workload) int {
	if c := q.lessUsed(a, b); c != 0 {
		return c
	}
	if !q.strict() && q.preemptor != nil && a != b {
		switch q.preemptor {
		case a:
			return -1
		case b:
			return 1
		}
	}
	if c := cmp.Compare(b.effective, a.effective); c != 0 {
		return c
	}
	return byAge(a, b)
}

// byAge orders by queue-order time, then UID, then name.
func byAge(a, b *workload) int {
	if c := a.queuedAt().Compare(b.queuedAt()); c != 0 {
		return c
	}
	return cmp.Or(strings.Compare(a.UID, b.UID), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// push puts a workload into the heap.
func (q *queue) push(w *workload) {
	delete(q.inadmissible, w)
	w.pendingIn = q
	heap.Push(&q.waiting, w)
}

// markInadmissible puts a workload aside until the next retry.
func (q *queue) markInadmissible(w *workload) {
	if w.heapIndex >= 0 {
		heap.Remove(&q.waiting, w.heapIndex)
	}
	w.pendingIn = q
	q.inadmissible[w] = true
}

// fix moves a workload of the heap to its place after a change.
func (q *queue) fix(w *workload) { heap.Fix(&q.waiting, w.heapIndex) }

// pop takes the head; nil if nobody waits.
func (q *queue) pop() *workload {
	if len(q.waiting.items) == 0 {
		return nil
	}
	return heap.Pop(&q.waiting).(*workload)
}

// remove forgets a pending workload and its progress.
func (q *queue) remove(w *workload) {
	if w.heapIndex >= 0 {
		heap.Remove(&q.waiting, w.heapIndex)
	}
	delete(q.inadmissible, w)
	w.pendingIn, w.scan = nil, nil
	if q.preemptor == w {
		q.preemptor = nil
	}
}

// seenAlike reports whether others of a workload's shape were found not to fit since the last retry.
func (q *queue) seenAlike(w *workload) bool { return !q.strict() && q.alike[w.shape] }

// markAlikeInadmissible puts all aside that wait and look like one that was found not to fit.
func (q *queue) markAlikeInadmissible(shape string) {
	if q.strict() {
		return
	}
	q.alike[shape] = true
	var found []*workload
	for _, w := range q.waiting.items {
		if w.shape == shape {
			found = append(found, w)
		}
	}
	for _, w := range found {
		q.markInadmissible(w)
	}
}

// waitingHeap implements heap.Interface by queue.before.
type waitingHeap struct {
	queue *queue
	items []*workload
}

func (h *waitingHeap) Len() int           { return len(h.items) }
func (h *waitingHeap) Less(i, j int) bool { return h.queue.before(h.items[i], h.items[j]) < 0 }

func (h *waitingHeap) Swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	h.items[i].heapIndex, h.items[j].heapIndex = i, j
}

func (h *waitingHeap) Push(x any) {
	w := x.(*workload)
	w.heapIndex = len(h.items)
	h.items = append(h.items, w)
}

func (h *waitingHeap) Pop() any {
	last := len(h.items) - 1
	w := h.items[last]
	h.items[last] = nil
	h.items = h.items[:last]
	w.heapIndex = -1
	return w
}
