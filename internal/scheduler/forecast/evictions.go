package forecast

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/placement"
)

// evictions are the pods and workloads that stop for the job in any run. Those of the first run come first. none is
// true if there is a run in which none of the uncertain ones stops, and stops is how many pods of others stop.
func (f *forecast) evictions(runs []*run, job int, needs map[types.NamespacedName]bool) (all []Eviction, none bool, stops Range) {
	for _, step := range f.steps {
		for _, r := range step.admissions {
			for _, e := range r.evicted {
				if step.job == job {
					all = append(all, f.workloadEviction(runs[0], e, needs))
				}
			}
		}
	}
	seen := map[*placement.Pod]int{}
	times, chosen, spared := map[int]int{}, map[int]bool{}, map[int]bool{}
	for _, r := range runs {
		losses := f.losses(r, job)
		for _, v := range r.lost {
			if v.job != job || v.queue {
				continue
			}
			at, there := seen[v.pod]
			if !there {
				at = len(all)
				seen[v.pod] = at
				all = append(all, f.podEviction(v))
			}
			times[at]++
			chosen[at] = chosen[at] || v.chosen
			spared[at] = spared[at] || f.spares(r, v)
			if o := f.ownerOf(v.pod); all[at].Outcome == "" {
				all[at].Outcome = f.ownerOutcome(r, losses[o], needs)
			}
		}
	}
	for _, r := range runs {
		for _, v := range f.possible(r, job) {
			if _, there := seen[v.pod]; there || v.job != job {
				continue
			}
			seen[v.pod] = len(all)
			e := f.podEviction(v)
			l := loss{owner: f.ownerOf(v.pod), pods: 1, unless: f.unlessSucceeded(v.pod.Object())}
			if isWorker(v.pod.Object()) {
				l.pods, l.workers = 0, 1
			}
			e.Outcome = f.ownerOutcome(r, l, needs)
			all = append(all, e)
		}
	}
	cut := slices.ContainsFunc(runs, func(r *run) bool { return r.cut })
	for at := range all {
		if !all[at].Workload {
			all[at].Certain = times[at] == len(runs) && (!cut || !chosen[at]) && !spared[at]
		}
	}
	for i, r := range runs {
		none = none || !slices.ContainsFunc(r.lost, func(v victim) bool { return v.job == job && !v.queue && !all[seen[v.pod]].Certain })
		count := 0
		for _, v := range r.lost {
			if v.job == job && !v.queue && !all[seen[v.pod]].Own {
				count++
			}
		}
		if i == 0 {
			stops = Range{count, count}
		}
		stops = Range{min(stops.Min, count), max(stops.Max, count)}
	}
	for _, e := range all {
		if e.Workload && !e.Own {
			stops.Min, stops.Max = stops.Min+len(e.Pods), stops.Max+len(e.Pods)
		}
	}
	return all, none, stops
}

// possible are the pods that may stop for a job besides the victims of its runs: by choices that the forecast did not
// follow, or because they are equivalent to victims.
func (f *forecast) possible(r *run, job int) []victim {
	var found []victim
	for _, v := range slices.Concat(r.lost, r.others) {
		if v.job != job || v.queue {
			continue
		}
		for _, other := range f.symmetry.images(v) {
			switch {
			case slices.ContainsFunc(found, func(o victim) bool { return o.pod == other.pod }):
			case len(found) == maxPossible:
				f.unnamed = true
				return found
			default:
				found = append(found, other)
			}
		}
	}
	return found
}

// spares reports whether a run leaves a pod alone that is equivalent to a victim: then the scheduler may exchange the
// two.
func (f *forecast) spares(r *run, v victim) bool {
	return slices.ContainsFunc(f.symmetry.images(v), func(other victim) bool {
		return !slices.ContainsFunc(r.lost, func(l victim) bool { return l.pod == other.pod })
	})
}

func (f *forecast) podEviction(v victim) Eviction {
	o := f.ownerOf(v.pod)
	e := Eviction{
		Namespace: v.pod.Namespace(), Name: v.pod.Name, Node: v.node, Priority: v.pod.Priority, For: v.by, Grace: grace(v.pod.Object()),
		Owner: o.String(), OwnerKind: o.kind, OwnerName: o.name,
	}
	if p, ok := f.planned[v.pod]; ok {
		e.Planned, e.Own = true, p.job == f.number
		e.Name = p.Role + " of " + f.jobs[p.job].Name
		if o.kind == "" {
			e.Owner, e.OwnerKind, e.OwnerName = f.jobs[p.job].Noun+" "+f.jobs[p.job].String(), f.jobs[p.job].Noun, f.jobs[p.job].Name
		}
	} else if last := f.jobs[f.number]; last.Grows && o.kind == last.Noun && o.key() == last.Key() {
		e.Own = true
	}
	return e
}

func (f *forecast) workloadEviction(r *run, w evictedWorkload, needs map[types.NamespacedName]bool) Eviction {
	o := f.ownerOfWorkload(w.name)
	e := Eviction{
		Workload: true, Certain: true, Namespace: w.name.Namespace, Name: w.name.Name, Priority: w.priority, Reason: w.reason,
		Owner: o.String(), OwnerKind: o.kind, OwnerName: o.name,
	}
	if p, ok := f.queues.planned[w.name]; ok {
		e.Planned, e.Own = true, p.number == f.number
		e.Owner, e.OwnerKind, e.OwnerName = p.job.Noun+" "+p.job.String(), p.job.Noun, p.job.Name
	}
	for _, l := range f.podsOf(r, w.name) {
		e.Pods = append(e.Pods, l.pod.String())
		e.Grace = max(e.Grace, grace(l.pod.Object()))
	}
	slices.Sort(e.Pods)
	e.Outcome = requeued(cmp.Or(e.Owner, "it"), w.ahead)
	if p, ok := f.queues.planned[w.name]; o.kind == aTrainingJob && f.burst(w.name) || ok && p.part.optional() {
		e.Outcome = f.ownerOutcome(r, f.losses(r, f.number)[o], needs)
	}
	return e
}

// burst reports whether a workload is one worker of a training job, above its minimum.
func (f *forecast) burst(name types.NamespacedName) bool {
	w := f.queues.known[name]
	return w != nil && len(w.OwnerReferences) == 1 && ownedByPods(w)
}

// ownerOfWorkload is the owner of a workload: the owner of its pods if it has some, else the Job that owns it.
func (f *forecast) ownerOfWorkload(name types.NamespacedName) owner {
	w := f.queues.known[name]
	if w == nil {
		return owner{}
	}
	for _, o := range w.OwnerReferences {
		if l, ok := f.at[o.UID]; ok {
			return ownerOf(l.pod.Object())
		}
	}
	for i := range w.Spec.PodSets {
		template := w.Spec.PodSets[i].Template
		if o := ownerOf(&corev1.Pod{ObjectMeta: template.ObjectMeta}); o.kind != "" {
			o.namespace = name.Namespace
			return o
		}
	}
	for _, o := range w.OwnerReferences {
		if o.Kind != "Pod" {
			return owner{kind: o.Kind, namespace: name.Namespace, name: o.Name}
		}
	}
	return owner{}
}
