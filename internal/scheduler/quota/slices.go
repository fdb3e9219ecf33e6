package quota

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// predecessor is the workload whose quota another takes over: it must hold quota of the queue that decides about the
// other (Kueue's workloadslicing, ReplacedWorkloadSlice). Nil: the other is like any workload.
func (e *Engine) predecessor(w *workload, q *queue) *workload {
	if w.Replaces.Name == "" || w.Replaces.Namespace != w.Namespace {
		return nil
	}
	old := e.workloads[w.Replaces]
	if old == nil || old.heldIn != q || len(old.Reservation.Admission.PodSetAssignments) < len(w.sets) {
		return nil
	}
	return old
}

// heldSet is what a pod set holds, less what reclaimable pods gave back.
type heldSet struct {
	name    string
	count   int64
	flavors map[string]string
	amounts map[string]Amount
}

// heldSets lists what each pod set of a workload with quota holds.
func (w *workload) heldSets() []heldSet {
	all := make([]heldSet, 0, len(w.Reservation.Admission.PodSetAssignments))
	for _, a := range w.Reservation.Admission.PodSetAssignments {
		set := heldSet{name: string(a.Name), flavors: map[string]string{}, amounts: map[string]Amount{}}
		now := int64(0)
		for _, s := range w.sets {
			if s.Name == set.name {
				set.count, now = int64(s.Count), int64(s.count)
			}
		}
		if a.Count != nil {
			set.count = int64(*a.Count)
		}
		for name, flavor := range a.Flavors {
			set.flavors[string(name)] = string(flavor)
		}
		for name, q := range a.ResourceUsage {
			amount := max(0, requestOf(name, q))
			if now < set.count && set.count > 0 {
				amount = (amount / Amount(set.count)).times(now)
			}
			set.amounts[string(name)] = amount
		}
		set.count = min(set.count, now)
		all = append(all, set)
	}
	return all
}

// beyondPredecessor takes from a request of some pod sets what the predecessor holds for them already. Why is not empty
// if the predecessor has another flavor: both must have the same.
func (a *assignment) beyondPredecessor(members []int, r request, flavor string) (amount Amount, why string) {
	amount = r.amount
	for _, at := range members {
		if len(a.replaced) == 0 {
			break
		}
		old := &a.replaced[at]
		if has := old.flavors[r.resource]; has != flavor {
			return amount, fmt.Sprintf("could not assign %s flavor since the original workload is assigned: %s", flavor, has)
		}
		amount = amount.minus(old.amounts[r.resource])
	}
	return amount, ""
}

// heldBefore is what the predecessor's pod set of a name holds.
func (a *assignment) heldBefore(set, resource string) Amount {
	for i := range a.replaced {
		if a.replaced[i].name == set {
			return a.replaced[i].amounts[resource]
		}
	}
	return 0
}

// withPredecessor adds the predecessor to an entry that could be admitted: its quota is free then.
func (e *Engine) withPredecessor(en *entry) {
	if old := e.predecessor(en.w, en.q); old != nil {
		en.replaced = old
		en.targets = slices.Insert(en.targets, 0, victim{w: old})
	}
}

// victims are the targets that are to be evicted: all but the predecessor.
func (en *entry) victims() []victim {
	at := slices.IndexFunc(en.targets, func(v victim) bool { return v.w == en.replaced })
	if en.replaced == nil || at < 0 {
		return en.targets
	}
	return slices.Delete(slices.Clone(en.targets), at, at+1)
}

// takeOver ends the predecessor of a workload that was admitted.
func (e *Engine) takeOver(en *entry) *types.NamespacedName {
	if en.replaced == nil {
		return nil
	}
	name := en.replaced.NamespacedName
	e.Finish(name)
	return &name
}
