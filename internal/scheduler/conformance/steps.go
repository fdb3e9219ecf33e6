package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/quota"
)

// step does what a step says, and lets the engine come to rest.
func (r *replay) step(s *Step) error {
	switch s.Op {
	case Submit:
		w, err := s.Submitted()
		if err != nil {
			return err
		}
		if err := r.submit(&w); err != nil {
			return err
		}
	case SubmitMany:
		for i := range s.Workloads {
			if i > 0 {
				if err := r.pass(betweenSubmits); err != nil {
					return err
				}
			}
			if err := r.submit(&s.Workloads[i]); err != nil {
				return err
			}
			if err := r.rest(); err != nil {
				return err
			}
		}
	case Finish, SetActive, SetPriority, SetBoost, Resize, UnhealthyNode, PodsNotReady:
		if err := r.change(s); err != nil {
			return err
		}
	case SetQuota:
		if err := r.setQuota(s); err != nil {
			return err
		}
	case StopPolicy:
		if err := r.stop(s); err != nil {
			return err
		}
	case SetNode:
		if s.Node == nil {
			return errors.New("node: it is missing")
		}
		r.setNode(s.Node)
	case DeleteNode:
		r.engine.DeleteNode(s.Name)
	case Wait:
		var seconds int64
		if err := json.Unmarshal(s.Value, &seconds); err != nil {
			return fmt.Errorf("value: want a number of seconds, got %s", s.Value)
		}
		if err := r.pass(time.Duration(seconds) * time.Second); err != nil {
			return err
		}
	case SetPod:
		if s.Pod == nil {
			return errors.New("pod: it is missing")
		}
		r.setPod(s.Pod)
	case DeletePod:
		r.engine.DeletePod(r.name(s.Name))
	default:
		return fmt.Errorf("the operation %q is not known", s.Op)
	}
	return r.rest()
}

func (r *replay) submit(w *Workload) error {
	if _, there := r.tracked[w.Name]; there {
		return fmt.Errorf("workload %s is there already", w.Name)
	}
	priority, known := r.classes[w.PriorityClass]
	if !known && w.PriorityClass != "" {
		return fmt.Errorf("workload %s: there is no priority class %q", w.Name, w.PriorityClass)
	}
	spec := quota.Workload{
		NamespacedName: r.name(w.Name), UID: r.uids(w.Name), JobUID: w.Name,
		Created: r.now, Priority: priority, Boost: w.Boost, Queue: w.Queue,
	}
	if w.Replaces != "" {
		spec.Replaces = r.name(w.Replaces)
	}
	for _, s := range w.Sets() {
		set := quota.PodSet{
			Name: s.Name, Count: s.Count, MinCount: s.MinCount, Requests: s.Requests, Topology: s.TopologyRequest,
			NodeSelector: s.NodeSelector, NodeAffinity: scheduler.RequiredNodeAffinity(s.Affinity), Tolerations: s.Tolerations,
		}
		if t := s.TopologyRequest; t != nil && t.PodSetGroupName != nil {
			set.Group = *t.PodSetGroupName
		}
		spec.PodSets = append(spec.PodSets, set)
	}
	r.order = append(r.order, w.Name)
	r.tracked[w.Name] = &tracked{spec: spec, evictions: map[string]int32{}}
	r.engine.SetWorkload(spec)
	return nil
}

// change finishes a workload or changes its spec.
func (r *replay) change(s *Step) error {
	name, err := s.Target()
	if err != nil {
		return err
	}
	t, known := r.tracked[name]
	if !known {
		return fmt.Errorf("there is no workload %q", name)
	}
	switch s.Op {
	case Finish:
		if w, _ := r.engine.Workload(r.name(name)); w.Finished {
			return nil
		}
		r.engine.Finish(r.name(name))
		r.events = append(r.events, Event{Event: "Finished", Workload: name, Reason: kueue.WorkloadFinishedReasonSucceeded})
		return nil
	case UnhealthyNode:
		if err := r.pass(beforeReplacement); err != nil {
			return err
		}
		w := t.spec
		w.UnhealthyNodes = []string{s.Name}
		r.engine.SetWorkload(w)
		return nil
	case PodsNotReady:
		r.tooLate(name)
		return nil
	case SetActive:
		var active bool
		if err := json.Unmarshal(s.Value, &active); err != nil {
			return fmt.Errorf("value: want true or false, got %s", s.Value)
		}
		t.spec.Inactive = !active
		t.late, t.resumeAt = 0, time.Time{}
		if active {
			defer r.engine.Resume(r.name(name)) // the backoff is forgotten
		}
	case SetPriority:
		priority, known := r.classes[s.PriorityClass]
		if !known {
			return fmt.Errorf("there is no priority class %q", s.PriorityClass)
		}
		t.spec.Priority = priority
	case Resize:
		t.spec.PodSets = slices.Clone(t.spec.PodSets)
		if err := json.Unmarshal(s.Value, &t.spec.PodSets[0].Count); err != nil {
			return fmt.Errorf("value: want a number of pods, got %s", s.Value)
		}
	case SetBoost:
		if err := json.Unmarshal(s.Value, &t.spec.Boost); err != nil {
			return fmt.Errorf("value: want a whole number, got %s", s.Value)
		}
	}
	r.engine.SetWorkload(t.spec)
	return nil
}

// tooLate evicts a workload whose pods were not ready in time.
func (r *replay) tooLate(name string) {
	if w, _ := r.engine.Workload(r.name(name)); w.Reservation == nil || !w.Reservation.Admitted {
		return
	}
	t := r.tracked[name]
	if r.lateness != nil && t.late >= *r.lateness {
		t.spec.Inactive, t.deactivatedFor = true, "/"+kueue.WorkloadRequeuingLimitExceeded
		t.late, t.resumeAt = 0, time.Time{}
		r.engine.SetWorkload(t.spec)
		return
	}
	t.resumeAt = r.now.Add(r.backoff << t.late)
	t.late++
	r.engine.Evict(r.name(name), kueue.WorkloadEvictedByPodsReadyTimeout, r.now)
	r.evicted(name, Event{Reason: kueue.WorkloadEvictedByPodsReadyTimeout}, "/WaitForStart", fmt.Sprintf("Exceeded the PodsReady timeout %s", r.name(name)))
}

// resume ends the backoffs whose time has come.
func (r *replay) resume() {
	for _, name := range r.order {
		if t := r.tracked[name]; !t.resumeAt.IsZero() && !r.now.Before(t.resumeAt) {
			t.resumeAt = time.Time{}
			r.engine.Resume(r.name(name))
		}
	}
}

func (r *replay) setNode(n *Node) {
	r.engine.SetNode(quota.Node{
		Name: n.Name, Labels: n.Labels, Taints: n.Taints, Allocatable: n.Allocatable, Unavailable: n.NotReady || n.Unschedulable,
	})
}

func (r *replay) setPod(p *Pod) { r.engine.SetPod(r.name(p.Name), p.Node, p.Requests) }

func (r *replay) setQuota(s *Step) error {
	old, known := r.queues[s.ClusterQueue]
	if !known {
		return fmt.Errorf("there is no ClusterQueue %q", s.ClusterQueue)
	}
	spec := *old.DeepCopy()
	quotaOf := func() *kueue.ResourceQuota {
		for _, g := range spec.ResourceGroups {
			for _, f := range g.Flavors {
				for i := range f.Resources {
					if string(f.Name) == s.Flavor && string(f.Resources[i].Name) == s.Resource {
						return &f.Resources[i]
					}
				}
			}
		}
		return nil
	}()
	if quotaOf == nil {
		return fmt.Errorf("ClusterQueue %s has no quota for %s in flavor %s", s.ClusterQueue, s.Resource, s.Flavor)
	}
	s.Change(quotaOf)
	return r.setQueue(s.ClusterQueue, spec)
}

// Change replaces the fields of a quota that a setQuota step names.
func (s *Step) Change(q *kueue.ResourceQuota) {
	for field, value := range s.Set {
		switch field {
		case "nominalQuota":
			if value == nil {
				value = &resource.Quantity{}
			}
			q.NominalQuota = *value
		case "borrowingLimit":
			q.BorrowingLimit = value
		case "lendingLimit":
			q.LendingLimit = value
		}
	}
}

func (r *replay) stop(s *Step) error {
	var policy kueue.StopPolicy
	if err := json.Unmarshal(s.Value, &policy); err != nil {
		return fmt.Errorf("value: want None, Hold or HoldAndDrain, got %s", s.Value)
	}
	if s.LocalQueue != "" {
		spec, known := r.local[s.LocalQueue]
		if !known {
			return fmt.Errorf("there is no LocalQueue %q", s.LocalQueue)
		}
		spec.StopPolicy = &policy
		r.setLocal(s.LocalQueue, spec)
		return nil
	}
	old, known := r.queues[s.ClusterQueue]
	if !known {
		return fmt.Errorf("there is no ClusterQueue %q", s.ClusterQueue)
	}
	spec := *old.DeepCopy()
	spec.StopPolicy = &policy
	return r.setQueue(s.ClusterQueue, spec)
}
