package quota

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
)

// retry names whose inadmissible workloads are to be tried again: those of a cohort's subtree, or of a ClusterQueue
// that has none.
type retry struct{ cohort, queue string }

// retryLater brings back, after the interval, the inadmissible workloads of a queue and of all others in its tree.
func (e *Engine) retryLater(q *queue) {
	cohort := string(q.spec.CohortName)
	if cohort == "" {
		e.note(retry{queue: q.name})
		return
	}
	e.retryCohort(cohort)
}

// retryCohort does so for the tree of a cohort. Trees with a cycle are left alone: mending the cycle is a change of its
// own.
func (e *Engine) retryCohort(name string) {
	if e.inCycle(name) {
		return
	}
	for e.cohorts[name].ParentName != "" {
		name = string(e.cohorts[name].ParentName)
	}
	e.note(retry{cohort: name})
}

func (e *Engine) note(r retry) {
	if _, noted := e.retries[r]; !noted {
		e.retries[r] = time.Time{}
	}
}

// RequeueAt is when inadmissible workloads are to be tried again after a change; call Cycle then. There is nothing to
// wait for if ok is false. Changes reported since the last Cycle are not counted: call Cycle after each report.
func (e *Engine) RequeueAt() (at time.Time, ok bool) {
	for _, due := range e.retries {
		if !due.IsZero() && (!ok || due.Before(at)) {
			at, ok = due, true
		}
	}
	return at, ok
}

// Requeue is what Cycle does first: it sets the time for changes reported since the last call, and puts back into their
// queues the inadmissible workloads for which the time has come. Only a simulation that lets no time pass while
// workloads are tried has a use for it on its own.
func (e *Engine) Requeue(now time.Time) {
	var due []retry
	for r, at := range e.retries {
		switch {
		case at.IsZero():
			e.retries[r] = now.Add(e.config.RequeueInterval)
		case !at.After(now):
			due = append(due, r)
		}
	}
	if len(due) == 0 {
		return
	}
	e.changed()
	e.rebuild()
	slices.SortFunc(due, func(a, b retry) int { return strings.Compare(a.cohort+"\x00"+a.queue, b.cohort+"\x00"+b.queue) })
	for _, r := range due {
		delete(e.retries, r)
		if r.queue != "" {
			if q := e.queues[r.queue]; q != nil {
				e.requeueInadmissible(q)
			}
			continue
		}
		if n := e.nodes[r.cohort]; n != nil && !e.inCycle(r.cohort) {
			n.visit(func(n *node) {
				for _, q := range n.queues {
					e.requeueInadmissible(q)
				}
			})
		}
	}
}

// requeueInadmissible puts the inadmissible workloads of a queue back, but for those that are held or whose namespace
// is not selected.
func (e *Engine) requeueInadmissible(q *queue) {
	clear(q.alike)
	var back []*workload
	for w := range q.inadmissible {
		if w.Held == "" && e.selected(q, w) {
			back = append(back, w)
		}
	}
	for _, w := range back {
		w.untried = false
		q.push(w)
	}
}

// selected reports whether a queue's namespace selector takes a workload. A namespace that was never set has only the
// label with its name.
func (e *Engine) selected(q *queue, w *workload) bool {
	set, known := e.namespaces[w.Namespace]
	if !known {
		set = labels.Set{"kubernetes.io/metadata.name": w.Namespace}
	}
	return q.selector.Matches(set)
}
