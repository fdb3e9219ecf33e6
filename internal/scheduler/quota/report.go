package quota

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// SetWorkload adds a workload or takes over changes of its spec: priority, queue, activity, gate, pod sets.
// What the engine knows already of its reservation, eviction and end is kept; see Release, Evict, Finish.
func (e *Engine) SetWorkload(spec Workload) {
	e.changed()
	w, known := e.workloads[spec.NamespacedName]
	if !known {
		e.addWorkload(spec)
		return
	}
	spec.Reservation, spec.Evicted, spec.EvictedAt, spec.Held, spec.Finished = w.Reservation, w.Evicted, w.EvictedAt, w.Held, w.Finished
	old := w.Workload
	if old.Queue != spec.Queue {
		e.usages.forgive(w)
		e.dequeue(w)
		e.member(w, false)
	}
	w.Workload = spec
	e.member(w, true)
	shape, priority := w.shape, w.effective
	w.assess(&e.config)
	e.suspect(w)
	switch {
	case w.Finished:
	case w.Inactive:
		if w.Reservation == nil {
			e.usages.forgive(w)
		}
		e.dequeue(w)
		e.drop(w)
		e.retryFor(w)
	case w.Reservation != nil:
		if e.attach(w) && (priority != w.effective || w.shape != shape) {
			e.retryFor(w)
		}
	default:
		if w.Held == kueue.WorkloadDeactivated {
			w.Held = ""
		}
		if w.shape != shape {
			w.scan = nil
		}
		if w.pendingIn == nil || w.shape != shape || old.Inactive || old.Gated != w.Gated {
			e.enqueue(w)
		}
	}
}

func (e *Engine) addWorkload(spec Workload) {
	w := &workload{Workload: spec, heapIndex: -1}
	w.assess(&e.config)
	e.workloads[w.NamespacedName] = w
	e.member(w, true)
	e.suspect(w)
	switch {
	case w.Finished:
	case w.Reservation != nil && !w.Inactive:
		e.attach(w)
	case !w.Inactive:
		e.enqueue(w)
	}
}

// suspect has a workload looked at in the next cycle if it may have to go.
func (e *Engine) suspect(w *workload) {
	if w.Inactive || w.Reservation != nil {
		e.suspects[w] = true
	}
}

// member keeps the index of workloads by LocalQueue.
func (e *Engine) member(w *workload, is bool) {
	name := w.localQueue()
	if !is {
		delete(e.members[name], w)
		return
	}
	if e.members[name] == nil {
		e.members[name] = map[*workload]bool{}
	}
	e.members[name][w] = true
}

// DeleteWorkload forgets a workload; what it held is free.
func (e *Engine) DeleteWorkload(name types.NamespacedName) {
	e.changed()
	w, known := e.workloads[name]
	if !known {
		return
	}
	e.usages.forgive(w)
	e.drop(w)
	e.retryFor(w)
	e.dequeue(w)
	e.member(w, false)
	delete(e.workloads, name)
}

// Finish reports that a workload has ended; what it held is free.
func (e *Engine) Finish(name types.NamespacedName) {
	e.changed()
	w, known := e.workloads[name]
	if !known || w.Finished {
		return
	}
	w.Finished = true
	e.usages.forgive(w)
	e.dequeue(w)
	e.drop(w)
	w.Reservation = nil
	e.retryFor(w)
}

// Evict reports that a workload was marked as evicted for a reason of the caller's
// (kueue.WorkloadEvictedByPodsReadyTimeout, …); it holds its quota until Release. Evictions that the engine decided
// need not be reported.
func (e *Engine) Evict(name types.NamespacedName, reason string, now time.Time) {
	e.changed()
	if w, known := e.workloads[name]; known && w.Evicted == "" {
		e.evicted(w, reason, now)
	}
}

func (e *Engine) evicted(w *workload, reason string, now time.Time) {
	w.Evicted, w.EvictedAt = reason, now
	if w.heldIn != nil {
		// Evicted workloads come first among victims.
		e.detach(w)
		e.attach(w)
		w.heldIn.generation++
	}
}

// Release reports that a workload gave its quota back: its job has stopped. It is queued again, at its old place,
// unless the reason of its eviction still stands: its queue is stopped, it was deactivated, or it must be resumed by
// Resume.
func (e *Engine) Release(name types.NamespacedName) {
	e.changed()
	w, known := e.workloads[name]
	if !known || w.Reservation == nil {
		return
	}
	switch w.Evicted {
	case "", kueue.WorkloadEvictedByPreemption, kueue.WorkloadEvictedDueToNodeFailures:
	default:
		w.Held = w.Evicted
	}
	if w.Inactive {
		e.usages.forgive(w)
	}
	e.drop(w)
	w.Reservation = nil
	e.retryFor(w)
	e.enqueue(w)
}

// Resume reports that the backoff of a workload is over that was evicted by kueue.WorkloadEvictedByPodsReadyTimeout or
// …ByAdmissionCheck.
func (e *Engine) Resume(name types.NamespacedName) {
	e.changed()
	if w, known := e.workloads[name]; known && w.Held != "" {
		w.Held = ""
		e.enqueue(w)
	}
}

// ChecksReady reports that the admission checks of a workload that holds quota are ready: it is admitted.
func (e *Engine) ChecksReady(name types.NamespacedName) {
	e.changed()
	w, known := e.workloads[name]
	if !known || w.Reservation == nil || w.Reservation.Admitted {
		return
	}
	w.Reservation.Admitted = true
	e.suspects[w] = true
	if w.heldIn != nil {
		w.heldIn.generation++
	}
}

// attach counts what a workload holds; it is void if it is counted already, but for changes. It reports whether it is
// counted now.
func (e *Engine) attach(w *workload) bool {
	if w.Reservation == nil || w.Inactive || w.Finished {
		return false
	}
	q := e.queues[string(w.Reservation.Admission.ClusterQueue)]
	if q == nil {
		return false
	}
	if w.heldIn != nil {
		e.detach(w)
		q.generation++
	}
	w.heldIn, w.holds, w.placed = q, w.holdings(), w.placements()
	e.places.uncounted = e.places.uncounted || len(w.placed) > 0
	q.tree.forget()
	at, _ := slices.BinarySearchFunc(q.reserved, w, victimOrder)
	q.reserved = slices.Insert(q.reserved, at, w)
	w.usage = w.usage[:0]
	for _, h := range w.holds {
		if q.tree != nil && !e.stale {
			if p, known := q.tree.number[h.pair]; known && q.at[p] >= 0 {
				w.usage = append(w.usage, pairAmount{p, h.amount})
				q.add(p, h.amount)
				continue
			}
		}
		e.stale = true // a tree that is not made yet, or a pair that it does not know
	}
	return true
}

// detach stops counting what a workload holds.
func (e *Engine) detach(w *workload) {
	q := w.heldIn
	q.tree.forget()
	at := slices.Index(q.reserved, w)
	q.reserved = slices.Delete(q.reserved, at, at+1)
	if !e.stale {
		for _, u := range w.usage {
			q.sub(u.pair, u.amount)
		}
	}
	e.places.uncounted = e.places.uncounted || len(w.placed) > 0
	w.heldIn, w.holds, w.usage, w.placed = nil, nil, nil, nil
}

// drop is detach for good: quota has become free.
func (e *Engine) drop(w *workload) {
	if w.heldIn != nil {
		w.heldIn.generation++
		e.detach(w)
	}
}

// victimOrder is the order in which the workloads of one queue are taken as victims: those being evicted first, then
// those of the LocalQueue of the queue that has used most, if that counts, then lower priority, then the latest
// reservation, then the smaller UID (Kueue's preemption/common/ordering.go).
func victimOrder(a, b *workload) int {
	if being := a.Evicted != ""; being != (b.Evicted != "") {
		if being {
			return -1
		}
		return 1
	}
	return cmp.Or(
		moreUsed(a, b),
		cmp.Compare(a.effective, b.effective),
		cmp.Compare(b.Reservation.At.Unix(), a.Reservation.At.Unix()),
		strings.Compare(a.UID, b.UID),
		strings.Compare(a.Namespace, b.Namespace),
		strings.Compare(a.Name, b.Name),
	)
}

// clusterQueue is the queue that a workload is pending in; nil if it is not to be queued: it is finished, inactive,
// gated or holds quota, or its LocalQueue is stopped or missing, or the ClusterQueue is.
func (e *Engine) clusterQueue(w *workload) *queue {
	if w.Finished || w.Inactive || w.Gated != "" || w.Reservation != nil {
		return nil
	}
	l := e.localQueues[w.localQueue()]
	if l == nil || l.stopped() {
		return nil
	}
	return e.queues[string(l.spec.ClusterQueue)]
}

// enqueue puts a workload that was added or changed where it belongs.
func (e *Engine) enqueue(w *workload) {
	q := e.clusterQueue(w)
	if q == nil || q != w.pendingIn {
		e.dequeue(w)
	}
	if q == nil {
		return
	}
	if w.heapIndex >= 0 {
		q.fix(w)
		return
	}
	delete(q.inadmissible, w)
	w.untried = false
	switch {
	case w.Held != "":
		q.markInadmissible(w)
	case q.seenAlike(w):
		w.untried = true
		q.markInadmissible(w)
	default:
		q.push(w)
	}
}

// enqueueNew puts a workload into a queue that has appeared or was started again, if it is not there.
func (e *Engine) enqueueNew(w *workload) {
	q := e.clusterQueue(w)
	switch {
	case q == nil || w.pendingIn == q:
	case w.Held != "":
		q.markInadmissible(w)
	default:
		q.push(w)
	}
}

// dequeue takes a workload out of the queue that it waits in.
func (e *Engine) dequeue(w *workload) {
	if w.pendingIn != nil {
		w.pendingIn.remove(w)
	}
}

// retryFor brings back the inadmissible workloads of the tree that a workload's LocalQueue leads to.
func (e *Engine) retryFor(w *workload) {
	if l := e.localQueues[w.localQueue()]; l != nil {
		if q := e.queues[string(l.spec.ClusterQueue)]; q != nil {
			e.retryLater(q)
		}
	}
}

// String is the workload's name, for messages and failures.
func (w *workload) String() string { return fmt.Sprintf("%s/%s", w.Namespace, w.Name) }
