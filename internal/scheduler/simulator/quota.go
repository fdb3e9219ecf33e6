package simulator

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/quota"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"
)

// workload is a Kueue Workload and the pods that use its quota.
type workload struct {
	id    int
	name  string
	owner owner
	queue string
	class string
	spec  quota.Workload
	kinds []eventlog.Owner

	indexed map[string]bool // pod sets whose pods are placed by their numbers
	placed  []*pod          // its pods that have not ended, where pods are placed by topology

	admission *kueue.Admission
	pods      int  // that have not ended
	evicting  bool // its pods are terminating
	waits     string

	since   Time      // when it was admitted
	boost   int32     // what is added to its priority
	boosted time.Time // when that was last changed, since its admission
}

// holds reports whether pods of the workload may run.
func (w *workload) holds() bool { return w.admission != nil && !w.evicting }

// set is a pod set of a workload.
type set struct {
	name  string
	count int
	pod   *scenariofile.Pod
	// annotations of its template, which request a topology
	annotations map[string]string
}

// newWorkload submits a workload to a LocalQueue.
func (s *simulation) newWorkload(o owner, name, queue, class string, podPriority int32, owners []eventlog.Owner, sets ...set) *workload {
	w := &workload{id: s.workloadsMade, name: name, owner: o, queue: queue, class: class, kinds: owners, indexed: map[string]bool{}}
	s.workloadsMade++
	w.spec = quota.Workload{
		NamespacedName: types.NamespacedName{Namespace: scenariofile.Namespace, Name: name},
		UID:            uid(w.id), Created: s.clock(s.now), Priority: podPriority, Queue: queue,
	}
	if class != "" {
		w.spec.Priority = s.workloadClasses[class]
	}
	for _, set := range sets {
		request, group := requested(set.annotations)
		_, w.indexed[set.name] = set.annotations[kueue.PodGroupPodIndexLabelAnnotation]
		w.spec.PodSets = append(w.spec.PodSets, quota.PodSet{
			Name: set.name, Count: int32(set.count), Requests: corev1.ResourceList(set.pod.Requests),
			NodeSelector: set.pod.NodeSelector, NodeAffinity: scheduler.RequiredNodeAffinity(set.pod.Affinity), Tolerations: set.pod.Tolerations,
			Topology: request, Group: group,
		})
	}
	s.workloads[w.spec.NamespacedName] = w
	s.engine.SetWorkload(w.spec)
	s.quotaStale = true
	s.logWorkload(w, eventlog.Workload{})
	return w
}

// uid is a number whose texts are in the order of the numbers: the engine breaks ties by it.
func uid(n int) string {
	text := strconv.Itoa(n)
	return "0000000000"[:10-len(text)] + text
}

// admit runs scheduling cycles until nothing changes, and reports whether anything has changed.
func (s *simulation) admit() (acted bool) {
	for s.quotaStale {
		result := s.engine.Cycle(s.clock(s.now))
		s.quotaStale = !result.Settled
		for i := range result.Decisions {
			acted = s.decided(&result.Decisions[i]) || acted
		}
		if at, waits := s.engine.RequeueAt(); waits && result.Settled {
			due := s.time(at)
			if s.retryAt != due {
				s.retryAt = due
				s.eventQueue.add(event{at: max(due, s.now), kind: quotaRetries})
			}
		}
	}
	return acted
}

// decided carries out a decision of the engine.
func (s *simulation) decided(d *quota.Decision) (acted bool) {
	w := s.workloads[d.Workload]
	if w == nil {
		return false // an earlier decision of this cycle has withdrawn it
	}
	switch d.Kind {
	case quota.Admit:
		w.admission, w.waits = d.Admission, ""
		s.logWorkload(w, eventlog.Workload{})
		w.owner.admitted(w)
		return true
	case quota.Move:
		w.admission = d.Admission
		s.moved(w)
		return true
	case quota.Evict:
		w.spec.UnhealthyNodes = nil
		s.evict(w, d.Reason, "", d.Message)
		return true
	case quota.Preempt:
		s.waitsFor(w, d.Message)
		for _, target := range d.Targets {
			if victim := s.workloads[target.Workload]; victim != nil && !target.Ongoing {
				s.evict(victim, eventlog.EvictedByPreemption, target.Reason, target.Message)
				acted = true
			}
		}
	case quota.Wait:
		s.waitsFor(w, d.Message)
	}
	return acted
}

func (s *simulation) waitsFor(w *workload, message string) {
	if w.waits != message {
		w.waits = message
		s.logWorkload(w, eventlog.Workload{})
	}
}

// evict begins to evict a workload.
func (s *simulation) evict(w *workload, reason, preempted, cause string) {
	if w.evicting {
		return
	}
	w.evicting = true
	s.unboost(w)
	s.stats.evictions++
	s.logWorkload(w, eventlog.Workload{Evicted: reason, Preempted: preempted, Cause: cause})
	w.owner.evicted(w)
	s.releases(w)
}

// releasePod counts a pod that has ended.
func (s *simulation) releasePod(p *pod) {
	p.quota.pods--
	s.releases(p.quota)
}

// releases releases the quota of an evicted workload once its pods have ended.
func (s *simulation) releases(w *workload) {
	if !w.evicting || w.pods > 0 {
		return
	}
	w.evicting, w.admission = false, nil
	s.engine.Release(w.spec.NamespacedName)
	s.quotaStale = true
	s.logWorkload(w, eventlog.Workload{})
}

// finishes ends a workload whose pods are done.
func (s *simulation) finishes(w *workload) {
	s.unboost(w)
	s.engine.Finish(w.spec.NamespacedName)
	s.forget(w, eventlog.Workload{Finished: true})
}

// withdraws deletes a workload whose pod is not wanted any more.
func (s *simulation) withdraws(w *workload) { s.forget(w, eventlog.Workload{Deleted: true}) }

func (s *simulation) forget(w *workload, state eventlog.Workload) {
	s.engine.DeleteWorkload(w.spec.NamespacedName)
	delete(s.workloads, w.spec.NamespacedName)
	s.quotaStale = true
	s.logWorkload(w, state)
}

// selection is what the flavors of an admitted workload add to its pods of a kind.
func (w *workload) selection(s *simulation, role string) (f flavorSelection) {
	for _, assigned := range w.admission.PodSetAssignments {
		if name := string(assigned.Name); name != role && name != mainSet {
			continue
		}
		seen := map[string]bool{}
		for _, resource := range slices.Sorted(maps.Keys(assigned.Flavors)) {
			name := string(assigned.Flavors[resource])
			flavor := s.flavors[name]
			if flavor == nil || seen[name] {
				continue
			}
			seen[name] = true
			if len(flavor.NodeLabels) > 0 {
				if f.labels == nil {
					f.labels = map[string]string{}
				}
				maps.Copy(f.labels, flavor.NodeLabels)
			}
			f.tolerations = append(f.tolerations, flavor.Tolerations...)
		}
	}
	return f
}

// logWorkload logs a workload with the given state.
func (s *simulation) logWorkload(w *workload, state eventlog.Workload) {
	if s.log == nil {
		return
	}
	state.Name, state.UID, state.Owners, state.Queue = w.name, w.spec.UID, w.kinds, w.queue
	state.PriorityClass, state.Priority = w.class, w.spec.Priority
	if w.admission != nil {
		state.ReservedIn, state.Admitted = string(w.admission.ClusterQueue), !w.evicting
	} else {
		state.Waits = w.waits
	}
	if w.evicting {
		state.Evicted = cmp.Or(state.Evicted, eventlog.EvictedByPreemption)
	}
	s.write(eventlog.Event{Workload: &state})
}
