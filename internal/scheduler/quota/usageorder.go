package quota

import (
	"cmp"
	"container/heap"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/inf.v0"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/configuration"
)

// Admission fair sharing: in ClusterQueues whose admissionMode is UsageBasedAdmissionFairSharing, workloads of LocalQueues
// that have used less come first, and those of LocalQueues that have used more are evicted first. What was used fades with
// a half-life. It is brought up to date at intervals and whenever a workload is admitted, and each admission costs a
// penalty in advance (Kueue's pkg/util/admissionfairsharing, pkg/cache/queue/afs, and the controllers of LocalQueues and
// Workloads).

// usages are what the LocalQueues have used.
type usages struct {
	config *configuration.AdmissionFairSharing
	of     map[types.NamespacedName]ledger
}

// ledger is what a LocalQueue has used. Its lists are replaced, never changed.
type ledger struct {
	// consumed is as of a time; zero: it was never looked at.
	consumed corev1.ResourceList
	asOf     time.Time
	// penalties are those of workloads that have quota, but are not admitted yet.
	penalties map[types.NamespacedName]corev1.ResourceList
	weight    float64
	// usage is what all of that comes to.
	usage float64
}

func newUsages(config *configuration.AdmissionFairSharing) *usages {
	if config == nil {
		return nil
	}
	return &usages{config, map[types.NamespacedName]ledger{}}
}

func (u *usages) clone() *usages {
	if u == nil {
		return nil
	}
	return &usages{u.config, maps.Clone(u.of)}
}

// update changes what is known of a LocalQueue.
func (u *usages) update(name types.NamespacedName, change func(*ledger)) {
	l, known := u.of[name]
	if !known {
		l.weight = 1
	}
	change(&l)
	l.usage = u.total(&l)
	u.of[name] = l
}

// total is Kueue's CalculateUsage. The order of addition decides about the last bits.
func (u *usages) total(l *ledger) float64 {
	if l.weight <= 0 {
		return math.Inf(1)
	}
	all := l.consumed
	for _, penalty := range l.penalties {
		all = sum(all, penalty)
	}
	total := 0.0
	for _, name := range sortedResources(all) {
		weight, weighed := u.config.ResourceWeights[name]
		if !weighed {
			weight = 1
		}
		amount := all[name]
		total += weight * amount.AsApproximateFloat64()
	}
	return total / l.weight
}

// reweigh takes over the spec of a LocalQueue.
func (u *usages) reweigh(name types.NamespacedName, spec kueue.LocalQueueSpec) {
	if u == nil {
		return
	}
	u.update(name, func(l *ledger) {
		l.weight = 1
		if spec.FairSharing != nil && spec.FairSharing.Weight != nil {
			l.weight = spec.FairSharing.Weight.AsApproximateFloat64()
		}
	})
}

// forgive drops the penalty of a workload that will not be admitted.
func (u *usages) forgive(w *workload) {
	if u == nil || u.of[w.localQueue()].penalties[w.NamespacedName] == nil {
		return
	}
	u.update(w.localQueue(), func(l *ledger) { l.drop(w) })
}

func (l *ledger) drop(w *workload) {
	l.penalties = maps.Clone(l.penalties)
	delete(l.penalties, w.NamespacedName)
}

// fade brings what was used up to date: until now, since the last time, the queue has used what it uses.
func (l *ledger) fade(uses corev1.ResourceList, now time.Time, halfLife time.Duration) {
	if l.asOf.IsZero() {
		l.asOf = now
	}
	rate := fadingRate(max(0, now.Sub(l.asOf)), halfLife)
	l.consumed = sum(times(l.consumed, 1-rate), times(uses, rate))
	if now.After(l.asOf) {
		l.asOf = now
	}
}

// fadingRate is the part of what was used that is replaced by what is used after a time.
func fadingRate(elapsed, halfLife time.Duration) float64 {
	if halfLife == 0 {
		return 0
	}
	return 1.0 - math.Pow(0.5, elapsed.Seconds()/halfLife.Seconds())
}

// times multiplies as Kueue does, down to billionths.
func times(list corev1.ResourceList, by float64) corev1.ResourceList {
	factor, ok := new(inf.Dec).SetString(strconv.FormatFloat(by, 'f', -1, 64))
	if !ok {
		panic(fmt.Sprintf("quota: %v is no factor", by)) // rates are between 0 and 1
	}
	multiplied := make(corev1.ResourceList, len(list))
	for name, amount := range list {
		exact := new(inf.Dec).Mul(amount.AsDec(), factor)
		multiplied[name] = *resource.NewDecimalQuantity(*exact.Round(exact, 9, inf.RoundDown), resource.DecimalSI)
	}
	return multiplied
}

func sum(a, b corev1.ResourceList) corev1.ResourceList {
	all := make(corev1.ResourceList, len(a)+len(b))
	for _, list := range []corev1.ResourceList{a, b} {
		for name, amount := range list {
			total := all[name].DeepCopy()
			total.Add(amount.DeepCopy())
			all[name] = total
		}
	}
	return all
}

// usageBased reports whether the usage of LocalQueues decides here.
func (q *queue) usageBased() bool {
	return q.usages != nil && q.spec.AdmissionScope != nil && q.spec.AdmissionScope.AdmissionMode == kueue.UsageBasedAdmissionFairSharing
}

// lessUsed orders workloads that wait: that of the LocalQueue that has used less comes first.
func (q *queue) lessUsed(a, b *workload) int {
	if !q.ordersByUsage || a.Queue == b.Queue && a.Namespace == b.Namespace {
		return 0
	}
	return cmp.Compare(q.usages.of[a.localQueue()].usage, q.usages.of[b.localQueue()].usage)
}

// moreUsed orders victims: that of the LocalQueue that has used more comes first. Kueue takes LocalQueues of one name for
// one, also where they are in different namespaces.
func moreUsed(a, b *workload) int {
	q := a.heldIn
	if q != b.heldIn || a.Queue == b.Queue || !q.usageBased() {
		return 0
	}
	return cmp.Compare(q.usages.of[b.localQueue()].usage, q.usages.of[a.localQueue()].usage)
}

// collect lists the candidates of other queues as Kueue does: from the nearest cohort up, and then sorted. As usage counts
// within a ClusterQueue only, the order is not always transitive, so that it matters what was where before.
func (h *hunt) collect() {
	h.collected = map[class][]*workload{}
	for n := h.q.parent; n != nil; n = n.parent {
		of := priorityClass
		if h.advantage[n] {
			of = byPlaceClass
		}
		for _, q := range n.fromBelow(nil) {
			if q == h.q || h.meeting(q) != n || !q.active || !q.exceedsAny(h.needs) {
				continue
			}
			for _, w := range q.reserved {
				if h.qualifies(w, h.q.reclaimPolicy()) {
					h.collected[of] = append(h.collected[of], w)
				}
			}
		}
	}
	for _, found := range h.collected {
		slices.SortFunc(found, victimOrder)
	}
}

// fromBelow appends the queues below a cohort, those of its child cohorts first.
func (n *node) fromBelow(queues []*queue) []*queue {
	for _, child := range n.children {
		queues = child.fromBelow(queues)
	}
	return append(queues, n.queues...)
}

// followUsage brings what LocalQueues have used, and what is ordered by it, up to date.
func (e *Engine) followUsage(now time.Time) {
	if e.usages == nil {
		return
	}
	for _, name := range e.usages.names() {
		for _, w := range e.inLocalQueue(name) {
			e.settlePenalty(w, now)
		}
		if q := e.usedIn(name); q != nil {
			e.sample(name, q, now)
		}
	}
	for _, q := range e.ordered {
		if q.usageBased() {
			q.tree.forget()
			slices.SortFunc(q.reserved, victimOrder)
		}
	}
}

func (u *usages) names() []types.NamespacedName {
	return slices.SortedFunc(maps.Keys(u.of), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
}

// usedIn is the ClusterQueue of a LocalQueue that can be used now; nil: it cannot, and what it has used stays as it is.
func (e *Engine) usedIn(name types.NamespacedName) *queue {
	l := e.localQueues[name]
	if l == nil || l.stopped() {
		return nil
	}
	q := e.queues[string(l.spec.ClusterQueue)]
	if q == nil || !q.active {
		return nil
	}
	return q
}

// sample brings what a LocalQueue has used up to date if it is time. Only then does Kueue put those of its workloads that
// wait in their new places, or while there are penalties.
func (e *Engine) sample(name types.NamespacedName, q *queue, now time.Time) {
	l := e.usages.of[name]
	late := l.asOf.IsZero() || !now.Before(e.usages.due(l))
	if late || len(l.penalties) > 0 && now.After(l.asOf) {
		e.usages.update(name, func(l *ledger) { l.fade(e.inUse(name), now, e.usages.config.UsageHalfLifeTime.Duration) })
		for _, w := range slices.Clone(q.waiting.items) {
			if w.Queue == name.Name {
				q.fix(w)
			}
		}
		e.changed()
	}
	if len(e.usages.of[name].penalties) > 0 {
		heap.Init(&q.waiting)
	}
}

func (u *usages) due(l ledger) time.Time { return l.asOf.Add(u.config.UsageSamplingInterval.Duration) }

// inUse is what the admitted workloads of a LocalQueue use.
func (e *Engine) inUse(name types.NamespacedName) corev1.ResourceList {
	amounts := map[string]Amount{}
	for w := range e.members[name] {
		if w.heldIn == nil || !w.Reservation.Admitted {
			continue
		}
		for _, h := range w.holds {
			amounts[h.pair.resource] = amounts[h.pair.resource].plus(h.amount)
		}
	}
	return quantities(amounts)
}

func quantities(amounts map[string]Amount) corev1.ResourceList {
	list := make(corev1.ResourceList, len(amounts))
	for name, amount := range amounts {
		list[corev1.ResourceName(name)] = amount.quantity(corev1.ResourceName(name))
	}
	return list
}

// charge makes the LocalQueue of a workload that gets quota pay for it in advance: as much as the workload would have
// used after an interval.
func (e *Engine) charge(w *workload, q *queue, now time.Time) {
	if !q.usageBased() {
		return
	}
	amounts := map[string]Amount{}
	for i := range w.sets {
		for _, r := range w.sets[i].perPod {
			if !e.config.IgnoreUndeclared || q.group(r.resource) != nil {
				amounts[r.resource] = amounts[r.resource].plus(r.amount.times(int64(w.sets[i].count)))
			}
		}
	}
	c := e.usages.config
	penalty := times(quantities(amounts), fadingRate(c.UsageSamplingInterval.Duration, c.UsageHalfLifeTime.Duration))
	e.usages.update(w.localQueue(), func(l *ledger) {
		if l.asOf.IsZero() {
			l.asOf = now
		}
		l.penalties = maps.Clone(l.penalties)
		if l.penalties == nil {
			l.penalties = map[types.NamespacedName]corev1.ResourceList{}
		}
		l.penalties[w.NamespacedName] = penalty
	})
	e.settlePenalty(w, now)
}

// settlePenalty counts the penalty of a workload as used once it is admitted.
func (e *Engine) settlePenalty(w *workload, now time.Time) {
	penalty := e.usages.of[w.localQueue()].penalties[w.NamespacedName]
	if penalty == nil || w.heldIn == nil || !w.Reservation.Admitted || !w.heldIn.usageBased() {
		return
	}
	e.usages.update(w.localQueue(), func(l *ledger) {
		l.fade(e.inUse(w.localQueue()), now, e.usages.config.UsageHalfLifeTime.Duration)
		l.consumed = sum(l.consumed, penalty)
		l.drop(w)
	})
}

// SampleAt is when admission fair sharing next looks at what a LocalQueue has used; call Cycle then, also if nothing else
// happens: what was used until then is taken to be what is used at that time. ok is false if no LocalQueue can be used.
func (e *Engine) SampleAt() (at time.Time, ok bool) {
	if e.usages == nil {
		return at, false
	}
	e.rebuild()
	for name, l := range e.usages.of {
		if due := e.usages.due(l); e.usedIn(name) != nil && !l.asOf.IsZero() && (!ok || due.Before(at)) {
			at, ok = due, true
		}
	}
	return at, ok
}
