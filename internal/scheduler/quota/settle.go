package quota

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/preemption"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/tas"
)

// settle carries an entry's outcome over into the state, and reports it.
func (e *Engine) settle(r *Result, en *entry, now time.Time) {
	if en.replaces {
		e.settleReplacement(r, en, func(reason string) { e.evicted(en.w, reason, now) })
		return
	}
	d := Decision{Workload: en.w.NamespacedName, ClusterQueue: en.q.name, Why: en.why(), Borrows: en.a.borrows}
	switch en.outcome {
	case admitted:
		d.Kind = Admit
		d.Admission = en.admission()
		d.Checks = en.q.checksFor(d.Admission)
		e.admit(en.w, &Reservation{Admission: *d.Admission, At: now, Admitted: len(d.Checks) == 0})
		e.charge(en.w, en.q, now)
		d.Replaced = e.takeOver(en)
		r.Decisions = append(r.Decisions, d)
		return
	case preempting:
		d.Kind = Preempt
		d.Admission = en.admission()
		d.Targets = e.evictTargets(en, now)
	default:
		d.Kind = Wait
		d.Borrows = 0
	}
	d.Reason, d.Message, d.Cause = kueue.WorkloadPending, en.message, en.outcome.cause()
	e.requeueEntry(en)
	en.w.lastDecision = d
	r.Decisions = append(r.Decisions, d)
}

// admit gives a workload that was popped its quota.
func (e *Engine) admit(w *workload, reservation *Reservation) {
	q := e.queues[string(reservation.Admission.ClusterQueue)]
	if w.pendingIn != nil {
		w.pendingIn.remove(w)
	}
	w.Reservation, w.Evicted, w.lastDecision = reservation, "", Decision{}
	e.attach(w)
	q.generation++
}

// evictTargets marks an entry's targets as evicted.
func (e *Engine) evictTargets(en *entry, now time.Time) []Target {
	victims := en.victims()
	targets := make([]Target, 0, len(victims))
	for _, v := range victims {
		t := Target{
			Workload: v.w.NamespacedName, ClusterQueue: v.w.heldIn.name, Priority: v.w.Priority, Reason: v.reason,
			Ongoing: v.w.Evicted != "",
			Message: preemptionMessage(en.w, v.reason, en.q.path(), v.w.heldIn.path()),
		}
		if !t.Ongoing {
			e.evicted(v.w, kueue.WorkloadEvictedByPreemption, now)
		}
		targets = append(targets, t)
	}
	return targets
}

// preemptionMessage is what Kueue writes into the conditions Evicted and Preempted.
func preemptionMessage(preemptor *workload, reason, preemptorPath, victimPath string) string {
	why := preemption.Texts()[reason]
	return fmt.Sprintf("Preempted to accommodate a workload (UID: %s, JobUID: %s) due to %s; preemptor path: %s; preemptee path: %s",
		cmp.Or(preemptor.UID, "UNKNOWN"), cmp.Or(preemptor.JobUID, "UNKNOWN"), why, preemptorPath, victimPath)
}

// requeueEntry returns an entry that was not admitted to its queue: to the heap if it is to be tried again at once,
// else to the inadmissible ones (Kueue's pkg/cache/queue/cluster_queue.go, requeueIfNotPresent).
func (e *Engine) requeueEntry(en *entry) {
	w, q := en.w, en.q
	w.pendingIn = q
	if en.outcome != outNotSelected {
		w.scan = en.a.scan
	}
	if en.outcome == preempting {
		w.scan = nil
		q.preemptor = w
	}
	var atOnce bool
	switch {
	case q.strict():
		atOnce = en.outcome != outNotSelected
	default:
		atOnce = en.outcome == outTaken || en.outcome == outOverlaps || en.outcome == preempting
	}
	if w.Held == "" && (atOnce || w.scan.pending()) {
		q.push(w)
		return
	}
	q.markInadmissible(w)
	if en.outcome == outNoFit || en.outcome == outNoCandidates {
		q.markAlikeInadmissible(w.shape)
	}
}

// admission is what an entry gets, as status.admission.
func (en *entry) admission() *kueue.Admission {
	a := &kueue.Admission{ClusterQueue: kueue.ClusterQueueReference(en.q.name)}
	for i := range en.a.sets {
		a.PodSetAssignments = append(a.PodSetAssignments, en.a.sets[i].assignment())
	}
	return a
}

func (s *assignedSet) assignment() kueue.PodSetAssignment {
	a := kueue.PodSetAssignment{Name: kueue.PodSetReference(s.of.Name), Count: &s.count}
	for _, c := range s.chosen {
		if a.Flavors == nil {
			a.Flavors = make(map[corev1.ResourceName]kueue.ResourceFlavorReference, len(s.chosen))
			a.ResourceUsage = make(corev1.ResourceList, len(s.chosen))
		}
		name := resourceName(pair{resource: c.resource})
		a.Flavors[name] = kueue.ResourceFlavorReference(c.flavor)
		for _, r := range s.requests {
			if r.resource == c.resource {
				a.ResourceUsage[name] = r.amount.quantity(name)
			}
		}
	}
	if s.placed != nil {
		a.TopologyAssignment = tas.NewAssignment(s.placed.Levels, s.placed.Domains)
	}
	return a
}

// checksFor names the admission checks that an admission must pass, in order of name.
func (q *queue) checksFor(a *kueue.Admission) []string {
	var names []string
	for name, on := range q.checks() {
		applies := len(on) == 0
		for _, set := range a.PodSetAssignments {
			for _, flavor := range set.Flavors {
				applies = applies || slices.Contains(on, flavor)
			}
		}
		if applies {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
