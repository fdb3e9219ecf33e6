package quota

import (
	"fmt"
	"maps"
	"slices"
	"time"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// enforceStops evicts what stopped queues and deactivated workloads may not keep (Kueue's workload controller).
func (e *Engine) enforceStops(r *Result, now time.Time) {
	if len(e.suspects) == 0 {
		return
	}
	suspects := slices.SortedFunc(maps.Keys(e.suspects), byAge)
	clear(e.suspects)
	for _, w := range suspects {
		if !w.Finished && (w.Inactive || w.Reservation != nil) && w.Evicted == "" && e.workloads[w.NamespacedName] == w {
			e.enforceStop(r, w, now)
		}
	}
}

func (e *Engine) enforceStop(r *Result, w *workload, now time.Time) {
	evict := func(reason, message string) {
		d := Decision{Kind: Evict, Workload: w.NamespacedName, Reason: reason, Message: message}
		if w.Reservation != nil {
			d.ClusterQueue = string(w.Reservation.Admission.ClusterQueue)
		}
		e.evicted(w, reason, now)
		r.Decisions = append(r.Decisions, d)
	}
	if w.Inactive {
		evict(kueue.WorkloadDeactivated, "The workload is deactivated")
		return
	}
	q, l := e.queues[string(w.Reservation.Admission.ClusterQueue)], e.localQueues[w.localQueue()]
	var stopped string
	switch {
	case l != nil && l.stopped():
		if w.Reservation.Admitted && *l.spec.StopPolicy == kueue.HoldAndDrain {
			evict(kueue.WorkloadEvictedByLocalQueueStopped, "The LocalQueue is stopped")
			return
		}
		stopped = fmt.Sprintf("LocalQueue %s is stopped", w.Queue)
	case q != nil && q.stopped():
		if w.Reservation.Admitted && q.drains() {
			evict(kueue.WorkloadEvictedByClusterQueueStopped, "The ClusterQueue is stopped")
			return
		}
		stopped = fmt.Sprintf("ClusterQueue %s is stopped", q.name)
	}
	if stopped == "" || w.Reservation.Admitted {
		return
	}
	// A mere reservation is cancelled: there is nothing to stop.
	e.drop(w)
	w.Reservation = nil
	e.retryFor(w)
	e.enqueue(w)
	w.lastDecision = Decision{Kind: Wait, Workload: w.NamespacedName, Reason: kueue.WorkloadInadmissible, Message: stopped, Cause: QueueInactive}
	r.Decisions = append(r.Decisions, w.lastDecision)
}
