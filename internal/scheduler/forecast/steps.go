package forecast

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/placement"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/podadmission"
)

// step is a stage of a job after the decision of its queue.
type step struct {
	job        int
	pods       []*placement.Pod // submitted to the scheduler
	held       []*placement.Pod // waiting in their queue
	rejected   []rejection
	suspended  []*placement.Pod // of a Job that is created suspended
	admissions []admissionResult
	order      []*placement.Pod // all pods, in the order of their creation
	ends       []*placement.Pod // pods of earlier steps that have ended when this one begins
}

// rejection is a pod that the API server does not accept.
type rejection struct {
	pod *placement.Pod
	why *podadmission.Refusal
}

// admissionResult is the decision of a queue about a part.
type admissionResult struct {
	part Part
	admission
}

// take executes steps that happen at the same time in one run.
func (f *forecast) take(r *run, steps ...step) []*run {
	var lists [][]*placement.Pod
	for _, s := range steps {
		lists = append(lists, f.kinds(f.prepare(r, s))...)
	}
	if len(lists) == 0 {
		return []*run{r}
	}
	var runs []*run
	for _, settled := range r.place(lists...) {
		runs = append(runs, f.replace(settled)...)
	}
	return runs
}

// kinds groups pods by their kind: pods of one kind are created in their order, and which kind comes first is open.
func (f *forecast) kinds(pods []*placement.Pod) [][]*placement.Pod {
	var lists [][]*placement.Pod
	at := map[string]int{}
	for _, pod := range pods {
		kind, _, _ := strings.Cut(f.planned[pod].Role, " ") // the minimum workers of a master come first
		if _, known := at[kind]; !known {
			at[kind] = len(lists)
			lists = append(lists, nil)
		}
		lists[at[kind]] = append(lists[at[kind]], pod)
	}
	return lists
}

// prepare stops the pods that make room in queues, and returns the pods of a step that go to the scheduler.
func (f *forecast) prepare(r *run, s step) []*placement.Pod {
	r.job = s.job
	mark := func(pod *placement.Pod, as podOutcome) {
		as.job, as.role, as.alone = s.job, f.planned[pod].Role, f.jobs[s.job].ofPods()
		r.outcomes[pod] = &as
	}
	if f.blocked(r, s) {
		for _, pod := range s.order {
			mark(pod, podOutcome{state: Follows})
		}
		return nil
	}
	r.end(s.ends)
	for _, pod := range s.held {
		mark(pod, podOutcome{state: Queued})
	}
	for _, one := range s.rejected {
		mark(one.pod, podOutcome{state: Rejected, why: one.why.Message, passing: one.why.Passing})
	}
	for _, pod := range s.suspended {
		mark(pod, podOutcome{state: Suspended})
	}
	for _, pod := range s.pods {
		mark(pod, podOutcome{state: Waits})
	}
	for _, result := range s.admissions {
		f.stopEvicted(r, s, result)
	}
	return s.pods
}

// blocked reports whether the pods of a step are not created because pods of an earlier stage of the job have not started.
func (f *forecast) blocked(r *run, s step) bool {
	for pod, p := range r.outcomes {
		if planned, ok := f.planned[pod]; ok && p.job == s.job && !planned.Optional && p.state != Starts {
			return true
		}
	}
	return false
}

// stopEvicted stops the pods of workloads that lose their quota to a part. If the quota is free only when they have
// stopped, the part's pods start after them. Otherwise the part's pods may start while they are still on their nodes.
func (f *forecast) stopEvicted(r *run, s step, to admissionResult) {
	for _, e := range slices.Concat(to.others, to.evicted) {
		f.noteMissingPods(e.name)
		holds := f.queues.holdsUntilStopped(e.name)
		for _, l := range f.podsOf(r, e.name) {
			r.stop(l.pod, l.node)
			if !holds {
				continue
			}
			for _, pod := range s.pods {
				if to.part.index(f.planned[pod].Role) >= 0 {
					r.outcomes[pod].after = append(r.outcomes[pod].after, victim{pod: l.pod, node: l.node, job: r.job, queue: true})
				}
			}
		}
	}
}

// podsOf are the pods of a workload that have a node in a run.
func (f *forecast) podsOf(r *run, workload types.NamespacedName) []located {
	var found []located
	if p, ok := f.queues.planned[workload]; ok {
		for pod, outcome := range r.outcomes {
			if of := f.planned[pod]; outcome.bound != "" && of.job == p.number && p.part.index(of.Role) >= 0 {
				found = append(found, located{pod, outcome.bound})
			}
		}
		slices.SortFunc(found, func(a, b located) int { // they stop in this order
			return cmp.Compare(p.part.index(f.planned[a.pod].Role), p.part.index(f.planned[b.pod].Role))
		})
		return found
	}
	for _, pod := range f.workloadPods(workload) {
		if l, ok := f.at[pod.UID]; ok {
			found = append(found, l)
		}
	}
	return found
}

func ownedByPods(w *kueue.Workload) bool {
	return slices.ContainsFunc(w.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "Pod" })
}

// replace creates the pods again that preemption has evicted and that have controllers: they may find room elsewhere,
// and may evict others in turn.
func (f *forecast) replace(r *run) []*run {
	runs := []*run{r}
	for range maxRounds {
		var next []*run
		more := false
		for _, one := range r.inTime(runs) {
			freed := f.stopFailed(one)
			pods := f.replacements(one)
			if freed {
				pods = append(one.unbound(), pods...)
			}
			if len(pods) == 0 {
				next = append(next, one)
				continue
			}
			more = true
			next = append(next, one.place(pods)...)
		}
		if runs = next; !more {
			return runs
		}
	}
	for _, one := range runs {
		one.cut = true
	}
	return runs
}

// replacements are new pods for victims without one: pods that are created immediately or, if there are none, pods that
// Jobs create after their back-off.
func (f *forecast) replacements(r *run) []*placement.Pod {
	atOnce, later := f.toReplace(r)
	if len(atOnce) == 0 {
		atOnce = later
	}
	return f.replaceNow(r, atOnce)
}

// early are the runs in which replacements of victims are tried before other victims are
// gone: now or, where a controller waits until its own victim is gone, when those of one node are. There is no run for
// replacements that find no node by then: they wait, and are tried again.
func (f *forecast) early(r *run) (runs []*run) {
	nodes := r.stoppingNodes()
	if len(nodes) == 0 {
		return nil
	}
	gone := []string{""}            // the node whose victims are gone; "" for none
	each := len(nodes) <= r.steps() // else a replacement is tried as if its controller did not wait
	if len(nodes) > 1 && each {
		gone = append(gone, nodes...)
	}
	victims, _ := f.toReplace(r)
	for _, node := range gone {
		ready := slices.DeleteFunc(slices.Clone(victims), func(v victim) bool {
			if node == "" {
				return each && !v.stopped && !replacesStopping(v.pod.Object())
			}
			return v.stopped || v.node != node || replacesStopping(v.pod.Object())
		})
		if len(ready) == 0 {
			continue
		}
		full := r.room() < 2
		then := r.fork()
		then.clearNodes(func(other string) bool { return other == node })
		pods := f.replaceNow(then, ready)
		dryRun := then.cluster.Clone()
		decides := func(kinds ...placement.Kind) bool {
			return slices.ContainsFunc(pods, func(pod *placement.Pod) bool { return slices.Contains(kinds, dryRun.Schedule(pod).Kind) })
		}
		switch {
		case !decides(placement.Bound, placement.Preempts):
			then.drop()
		case full:
			then.drop()
			r.cut = r.cut || decides(placement.Preempts)
		default:
			then.queues = [][]*placement.Pod{byPriority(pods)}
			runs = append(runs, then.each([]*run{then})...)
		}
	}
	return runs
}

// replacesStopping reports whether the controller of a pod creates another as soon as the pod is being deleted. Other
// controllers wait until the pod is gone: StatefulSets use its name again, and Jobs count it until it has failed.
func replacesStopping(pod *corev1.Pod) bool {
	controller := metav1.GetControllerOfNoCopy(pod)
	return controller != nil && (controller.Kind == "ReplicaSet" || controller.Kind == "ReplicationController")
}

// toReplace are the victims that have no new pod yet: those whose controllers create one immediately, and those whose
// Jobs do after their back-off.
func (f *forecast) toReplace(r *run) (atOnce, later []victim) {
	replaced := map[*placement.Pod]bool{}
	for _, one := range r.outcomes {
		if one.instead != nil {
			replaced[one.instead] = true
		}
	}
	losses, successors := f.jobLosses(r), f.successors(r)
	for _, v := range r.lost {
		job := f.batchJobOf(v.pod.Object())
		succeeds := job != nil && v.evicted() && r.succeeds[job.UID]
		if succeeds {
			if successors[job.UID]--; successors[job.UID] < 0 {
				continue
			}
		}
		switch {
		case !v.evicted() || replaced[v.pod] || r.outcomes[v.pod] != nil || !f.recreates(v.pod.Object(), losses) || f.overQuota(r, v.pod.Object()):
		case f.backsOff(v.pod.Object()) && !succeeds:
			later = append(later, v)
		default:
			atOnce = append(atOnce, v)
		}
	}
	return atOnce, later
}

// replaceNow adds new pods for victims to a run, and returns them.
func (f *forecast) replaceNow(r *run, victims []victim) []*placement.Pod {
	var pods []*placement.Pod
	for _, v := range victims {
		pod := f.cluster.Pod(replacementPod(v.pod.Object()))
		pod.Started = f.started
		r.outcomes[pod] = &podOutcome{job: v.job, role: "what is made again in the place of " + v.pod.String(), state: Waits, instead: v.pod}
		pods = append(pods, pod)
	}
	return pods
}

// replacementPod is the pod that the owner of a victim creates in its place.
func replacementPod(pod *corev1.Pod) *corev1.Pod {
	again := *pod
	again.UID, again.Spec.NodeName = "", ""
	again.Status = corev1.PodStatus{}
	again.DeletionTimestamp, again.CreationTimestamp = nil, metav1.Time{}
	return &again
}
