package quota

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// workload is a Workload with the engine's state of it.
type workload struct {
	Workload
	// sets are the requests of the pod sets.
	sets []podSetRequests
	// effective is the priority that decides: with its boost, if that counts.
	effective int64
	// shape is equal for workloads that look the same to the scheduler: priority and pod sets.
	shape string

	keepsPlace bool // Config.LateKeepPlace

	// While it is pending: the queue it is in (nil: none), its place in the heap (-1: inadmissible or not in it), and
	// how far its scan of flavors is.
	pendingIn *queue
	heapIndex int
	scan      *scan
	// untried: it is inadmissible because others of its shape did not fit.
	untried bool
	// lastDecision has the last reason and message given for its waiting.
	lastDecision Decision

	// While it holds quota: of which queue (nil: it does not count), and what.
	heldIn *queue
	holds  []held
	// usage is holds by the numbers of the pairs in the queue's tree.
	usage []pairAmount
	// placed is where its pods are, by topology.
	placed []placement
}

// held is an amount of a pair that a workload holds.
type held struct {
	pair   pair
	amount Amount
}

// podSetRequests are the requests of a pod set.
type podSetRequests struct {
	*PodSet
	// count is without the pods that need no quota any more.
	count int32
	// perPod is ordered as Kueue goes through resources.
	perPod []request
}

// request is an amount of a resource.
type request struct {
	resource string
	amount   Amount
}

// scan is how far the search through the flavors got: where it stopped for each pod set (in the order of assignment)
// and resource, or -1 at the end; and when that was, because it is void later (see outdated).
type scan struct {
	stops      []map[string]int
	generation int64
	cycle      int64
	shape      string
}

// pending reports whether there are flavors left to try.
func (s *scan) pending() bool {
	if s == nil {
		return false
	}
	for _, stops := range s.stops {
		for _, at := range stops {
			if at != -1 {
				return true
			}
		}
	}
	return false
}

// next is the first flavor to try for a pod set's resource.
func (s *scan) next(set int, resource string) int {
	if s == nil || set >= len(s.stops) {
		return 0
	}
	if at, stopped := s.stops[set][resource]; stopped {
		return at + 1
	}
	return 0
}

// outdated reports whether the search must begin anew: another shape, or something was freed since, unless it was in
// this cycle or the one before.
func (s *scan) outdated(w *workload, generation, cycle int64) bool {
	if s.shape != w.shape {
		return true
	}
	return cycle-s.cycle > 1 && generation > s.generation
}

// resourceOrder is the order in which Kueue goes through resources: by the FNV-1a hash of the name.
func resourceOrder(a, b string) int {
	ha, hb := fnv.New64a(), fnv.New64a()
	_, _ = ha.Write([]byte(a))
	_, _ = hb.Write([]byte(b))
	switch x, y := ha.Sum64(), hb.Sum64(); {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return strings.Compare(a, b)
}

// assess works out priority, requests and shape after a change of the spec.
func (w *workload) assess(config *Config) {
	w.effective = int64(w.Priority)
	w.keepsPlace = config.LateKeepPlace
	if config.PriorityBoost {
		w.effective += int64(w.Boost)
	}
	w.sets = make([]podSetRequests, len(w.PodSets))
	for i := range w.PodSets {
		set := &w.PodSets[i]
		r := podSetRequests{PodSet: set, count: set.Count - min(set.Reclaimable, set.Count)}
		for name, q := range config.Resources.Count(set.Requests) {
			r.perPod = append(r.perPod, request{string(name), max(0, requestOf(name, q))})
		}
		slices.SortFunc(r.perPod, func(a, b request) int { return resourceOrder(a.resource, b.resource) })
		w.sets[i] = r
	}
	w.shape = w.describe()
}

// describe gives a text that is equal for workloads that are equal to the scheduler.
func (w *workload) describe() string {
	var b strings.Builder
	fmt.Fprint(&b, w.effective)
	for _, s := range w.sets {
		fmt.Fprintf(&b, ";%s*%d", s.Name, s.count)
		if s.MinCount != nil {
			fmt.Fprintf(&b, ">%d", *s.MinCount)
		}
		for _, r := range s.perPod {
			fmt.Fprintf(&b, ",%s=%d", r.resource, r.amount)
		}
		if s.Group != "" || len(s.NodeSelector) > 0 || s.NodeAffinity != nil || len(s.Tolerations) > 0 || s.Topology != nil {
			selection, err := json.Marshal([]any{s.Group, s.NodeSelector, s.NodeAffinity, s.Tolerations, s.Topology})
			if err != nil {
				panic(fmt.Sprintf("quota: node selection of %s: %v", w.NamespacedName, err)) // plain data cannot fail
			}
			b.Write(selection)
		}
	}
	return b.String()
}

// queuedAt is the time by which it is ordered: that of its creation, or of an eviction that says that it cannot run
// now.
func (w *workload) queuedAt() time.Time {
	if w.Evicted == kueue.WorkloadEvictedByPodsReadyTimeout && !w.keepsPlace || w.Evicted == kueue.WorkloadEvictedByAdmissionCheck {
		return w.EvictedAt
	}
	return w.Created
}

func (w *workload) localQueue() types.NamespacedName {
	return types.NamespacedName{Namespace: w.Namespace, Name: w.Queue}
}

// shrinkable reports whether partial admission is possible.
func (w *workload) shrinkable() bool {
	return slices.ContainsFunc(w.PodSets, func(s PodSet) bool { return s.MinCount != nil && s.Count > *s.MinCount })
}

// uses reports whether it holds any of the pairs.
func (w *workload) uses(pairs []int) bool {
	for _, u := range w.usage {
		if slices.Contains(pairs, u.pair) {
			return true
		}
	}
	return false
}

// holdings lists what a reservation takes, less what reclaimable pods gave back.
func (w *workload) holdings() []held {
	var all []held
	for _, set := range w.heldSets() {
		for _, name := range slices.Sorted(maps.Keys(set.flavors)) {
			amount := set.amounts[name]
			p := pair{set.flavors[name], name}
			if i := slices.IndexFunc(all, func(h held) bool { return h.pair == p }); i >= 0 {
				all[i].amount = all[i].amount.plus(amount)
			} else {
				all = append(all, held{p, amount})
			}
		}
	}
	return all
}

func sortedResources[V any](m map[corev1.ResourceName]V) []corev1.ResourceName {
	names := make([]corev1.ResourceName, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
