package forecast

import (
	"slices"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/placement"
)

// open are the claims that free choices of the scheduler leave open where not all of them were followed: where every choice
// leads to the same, only the nodes.
func (f *forecast) open() Claim {
	if f.settled() {
		return ClaimPlacement
	}
	return beyondQueue
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
