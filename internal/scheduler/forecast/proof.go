package forecast

import (
	"bytes"
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/placement"
)

// open are the claims that free choices of the scheduler leave open where not all of them were followed: where every choice
// leads to the same, only the nodes.
func (f *forecast) open(a Answer) Claim {
	switch {
	case f.settled():
		return ClaimPlacement
	case f.proves(a.Outcome):
		return beyondQueue &^ ClaimOutcome
	}
	return beyondQueue
}

// proves reports whether an outcome is that of every choice and order, by the room that there is without what the job may
// evict.
func (f *forecast) proves(outcome Outcome) bool {
	if len(f.jobs) != 1 || f.jobs[0].Grows || hasDeadline(f.jobs[0]) || f.waitsForQuota() || !slices.ContainsFunc(f.steps, func(s step) bool { return len(s.pods) > 0 }) {
		return false
	}
	var all, required []placement.Group
	for _, step := range f.steps {
		if len(step.pods) != len(step.order) || len(step.ends) > 0 {
			return false
		}
		for _, pod := range step.pods {
			g := placement.Group{Pod: pod, Count: 1}
			if o := pod.Object(); o.Spec.NodeName != "" || unscheduled(o) != "" {
				return false
			}
			if all = append(all, g); !f.planned[pod].Optional {
				required = append(required, g)
			}
		}
	}
	if f.dividesOwners(all[0].Pod.Priority) {
		return false
	}
	leaving := f.leaving()
	switch outcome {
	case Preempts:
		return len(leaving) == 0 && f.cluster.Displaces(all, f.pendingGroups())
	case Pends:
		return f.cluster.Crowded(required, f.pendingGroups(), func(pod *placement.Pod) bool { return leaving[pod] })
	default:
		return false
	}
}

// waitsForQuota reports whether workloads wait in queues: what the evictions end may give them quota, and they may be more
// important than the job.
func (f *forecast) waitsForQuota() bool {
	return f.snapshot.Queues != nil && slices.ContainsFunc(f.snapshot.Queues.Workloads, func(w *kueue.Workload) bool {
		return w.Status.Admission == nil && !meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadFinished)
	})
}

// dividesOwners reports whether an owner has pods that are less important than a priority, and others: if it loses the
// former, it may create all of them again.
func (f *forecast) dividesOwners(priority int32) bool {
	lower := map[owner]bool{}
	for _, l := range f.at {
		for _, o := range ownersOf(l.pod.Object()) {
			below := l.pod.Priority < priority
			if before, known := lower[o]; known && before != below {
				return true
			}
			lower[o] = below
		}
	}
	return false
}

// hasDeadline reports whether a job, or a part of it, may end before its victims have.
func hasDeadline(job Job) bool {
	text, err := json.Marshal(job.Object)
	return err != nil || bytes.Contains(text, []byte(`"activeDeadlineSeconds":`))
}

// pendingGroups are the pending pods of the cluster that the scheduler tries.
func (f *forecast) pendingGroups() (groups []placement.Group) {
	for _, pod := range f.cluster.Pending() {
		if unscheduled(pod.Object()) == "" {
			groups = append(groups, placement.Group{Pod: pod, Count: 1})
		}
	}
	return groups
}

// settles reports whether it does not depend on the scheduler's choices, nor on the order in which it tries pods, which of
// them start at once and which wait, planned ones and those that are pending in the cluster. It evicts nobody then.
func (f *forecast) settles() bool {
	for pod := range f.planned {
		if pod.Object().Spec.NodeName != "" {
			return false // its kubelet decides
		}
	}
	leaving := f.leaving()
	return f.cluster.Settled(f.tried(), func(pod *placement.Pod) bool { return leaving[pod] })
}

// tried are the pods that the scheduler tries.
func (f *forecast) tried() (groups []placement.Group) {
	at, kind := map[string]int{}, kinds()
	add := func(pod *placement.Pod) {
		if unscheduled(pod.Object()) != "" {
			return
		}
		i, known := at[kind(pod)]
		if !known {
			i = len(groups)
			at[kind(pod)] = i
			groups = append(groups, placement.Group{Pod: pod})
		}
		groups[i].Count++
	}
	for _, step := range f.steps {
		for _, pod := range step.order {
			if f.offered[pod] {
				add(pod)
			}
		}
	}
	for _, pod := range f.cluster.Pending() {
		add(pod)
	}
	return groups
}

// leaving are the pods of workloads that their queues evict.
func (f *forecast) leaving() map[*placement.Pod]bool {
	leaving := map[*placement.Pod]bool{}
	for _, step := range f.steps {
		for _, to := range step.admissions {
			for _, e := range slices.Concat(to.others, to.evicted) {
				for _, pod := range f.workloadPods(e.name) {
					leaving[f.at[pod.UID].pod] = true
				}
			}
		}
	}
	return leaving
}
