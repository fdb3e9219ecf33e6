package forecast

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/placement"
)

// open are the claims that free choices of the scheduler leave open where not all of them were followed: where every choice
// leads to the same, only the nodes.
func (f *forecast) open(a Answer) Claim {
	if f.settled() {
		return ClaimPlacement
	}
	open := beyondQueue
	if a.counted {
		open &^= ClaimEvictions
	}
	if f.proves(a.Outcome) {
		open &^= ClaimOutcome
	}
	return open
}

// proves reports whether an outcome is that of every choice and order, by the room that there is without what the job may
// evict.
func (f *forecast) proves(outcome Outcome) bool {
	all, required := f.contenders()
	if len(all) == 0 {
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

// contenders are all pods of the job, and those that it needs, if they are all that matters: none where quota, controllers or
// deadlines decide as well.
func (f *forecast) contenders() (all, required []placement.Group) {
	if len(f.jobs) != 1 || f.jobs[0].Grows || hasDeadline(f.jobs[0]) || f.waitsForQuota() {
		return nil, nil
	}
	for _, step := range f.steps {
		if len(step.pods) != len(step.order) || len(step.ends) > 0 {
			return nil, nil
		}
		for _, pod := range step.pods {
			g := placement.Group{Pod: pod, Count: 1}
			if o := pod.Object(); o.Spec.NodeName != "" || unscheduled(o) != "" {
				return nil, nil
			}
			if all = append(all, g); !f.planned[pod].Optional {
				required = append(required, g)
			}
		}
	}
	if len(all) > 0 && f.dividesOwners(all[0].Pod.Priority) {
		return nil, nil
	}
	return all, required
}

// displaced is what is proved of the evictions for the job; nil if nothing is.
func (f *forecast) displaced() *placement.Displacement {
	all, _ := f.contenders()
	if len(all) == 0 || len(f.leaving()) > 0 {
		return nil
	}
	proof, proved := f.cluster.Displaced(all, f.pendingGroups(), func(priority int32) bool { return f.dividesOwners(priority + 1) })
	if !proved {
		return nil
	}
	return &proof
}

// count replaces the evictions of an answer, of which not all are known, by what is proved of them: all candidates, and how
// many of them stop.
func (f *forecast) count(a *Answer) {
	proof := f.proof
	if proof == nil || a.Outcome != Preempts && a.Outcome != Pends {
		return
	}
	direct := 0
	for _, pods := range proof.Candidates {
		direct += len(pods)
	}
	candidates := f.withSiblings(proof.Candidates)
	if len(candidates) > direct {
		proof.Most = len(candidates)
	}
	found := a.Evicts
	a.counted, a.MaySpareAll, a.Stops, a.Evicts = true, proof.Fewest == 0, Range{proof.Fewest, proof.Most}, nil
	for _, l := range candidates {
		e := f.podEviction(victim{pod: l.pod, node: l.node, job: f.number})
		e.Certain, e.Outcome = len(candidates) == proof.Fewest, f.mayLose(l.pod, candidates).perhaps()
		a.Evicts = append(a.Evicts, e)
	}
	rank := func(e Eviction) int { // what was found comes first
		if at := slices.IndexFunc(found, func(other Eviction) bool { return other.what() == e.what() }); at >= 0 {
			return at
		}
		return len(found)
	}
	slices.SortStableFunc(a.Evicts, func(a, b Eviction) int { return cmp.Compare(rank(a), rank(b)) })
}

// mayLose is what the owner of a candidate may lose.
func (f *forecast) mayLose(pod *placement.Pod, candidates []located) loss {
	object := pod.Object()
	l := loss{owner: f.ownerOf(pod), unless: f.unlessSucceeded(object)}
	l.master = l.owner.kind == aTrainingJob && !isWorker(object)
	if job := f.batchJobOf(object); job != nil {
		var pods []*corev1.Pod
		for _, other := range candidates {
			if f.batchJobOf(other.pod.Object()) == job {
				pods = append(pods, other.pod.Object())
			}
		}
		l.fails = failureOf(job, pods)
	}
	return l
}

// withSiblings are the candidates of a proof and the pods that may stop when those do: the others of a Job that fails.
func (f *forecast) withSiblings(candidates map[string][]*placement.Pod) (all []located) {
	lost := map[owner]bool{}
	isCandidate := map[*placement.Pod]bool{}
	for _, pods := range candidates {
		for _, pod := range pods {
			isCandidate[pod] = true
			for _, o := range ownersOf(pod.Object()) {
				lost[o] = lost[o] || !replacesEach[o.kind]
			}
		}
	}
	for _, l := range f.at {
		sibling := slices.ContainsFunc(ownersOf(l.pod.Object()), func(o owner) bool { return lost[o] })
		if isCandidate[l.pod] || sibling {
			all = append(all, l)
		}
	}
	slices.SortFunc(all, func(a, b located) int { return cmp.Compare(a.pod.String(), b.pod.String()) })
	return all
}

// replacesEach are the kinds that create a pod for each one that they lose, and never stop the others for it.
var replacesEach = map[string]bool{"Deployment": true, "ReplicaSet": true, "StatefulSet": true, "DaemonSet": true, "ReplicationController": true}

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
