package placement

import (
	"cmp"
	"slices"
	"time"
)

// Settling says how many pods are to be settled.
type Settling struct {
	// Now is the moment of the snapshot: pods that were terminating already stop at their deletion timestamp, but not before.
	Now time.Time
	// Replace is what a victim's owner puts in its place once it has stopped; nil, or a nil pod: nothing. The pod joins the queue.
	Replace func(victim *Pod) *Pod
	// Watch sees every step before it is carried out, so that it may ask the cluster for Alternatives or an Explanation.
	Watch func(Step)
}

// Step is one attempt to schedule a pod.
type Step struct {
	Pod      *Pod
	Decision Decision
	// After is how long after the beginning it happens: the grace periods of victims that had to stop first.
	After time.Duration
}

// Fate is what becomes of a pod in the end.
type Fate struct {
	Pod *Pod
	// Kind: Bound: it starts on Node; Unschedulable: it waits for something that no eviction brings; Gated: it is left alone.
	Kind Kind
	Node string
	// After is how long it waits before it is bound; 0: at once.
	After time.Duration
	// Evicted are the pods that were evicted for it, in all its attempts.
	Evicted []*Pod
	// Approximate says what it uses that is not modelled.
	Approximate []string
}

// Settle schedules pods until nothing more happens: in the order of the scheduling queue, pods that preempt waiting until their victims stop
// (each when its grace period has passed, the longest that it may take), and those that fit nowhere trying again when a pod has stopped. Back-off
// between attempts is left out. The cluster is changed; the fates are in the order of the pods, followed by those that Replace added.
func (c *Cluster) Settle(pods []*Pod, how Settling) []Fate {
	s := settlement{c: c, Settling: how, fates: map[*Pod]*Fate{}}
	for _, n := range c.nodes {
		for _, o := range n.pods {
			if o.terminating {
				s.stopAt(o.pod, n.name, until(o.pod, how.Now))
			}
		}
	}
	for _, pod := range pods {
		s.join(pod)
	}
	for {
		s.drain()
		if !s.stop() {
			break
		}
	}
	fates := make([]Fate, len(s.order))
	for i, pod := range s.order {
		fates[i] = *s.fates[pod]
	}
	return fates
}

// settlement is the state of Settle.
type settlement struct {
	c *Cluster
	Settling
	now     time.Duration
	order   []*Pod
	fates   map[*Pod]*Fate
	active  []*Pod // sorted by queueOrder
	waiting []*Pod // were tried in vain, or wait for victims
	ends    []end  // sorted by time
}

// end is the stop of a terminating pod.
type end struct {
	pod   *Pod
	node  string
	after time.Duration
}

// until is how long a pod that is terminating may still run.
func until(pod *Pod, now time.Time) time.Duration {
	if deletion := pod.object.DeletionTimestamp; deletion != nil && deletion.After(now) {
		return deletion.Sub(now)
	}
	return 0
}

// grace is how long a pod may take to stop.
func grace(pod *Pod) time.Duration {
	seconds := int64(30) // core/v1 defaults
	if given := pod.object.Spec.TerminationGracePeriodSeconds; given != nil {
		seconds = *given
	}
	return time.Duration(seconds) * time.Second
}

func (s *settlement) join(pod *Pod) {
	s.order = append(s.order, pod)
	s.fates[pod] = &Fate{Pod: pod, Kind: Unschedulable}
	s.activate(pod)
}

func (s *settlement) activate(pod *Pod) {
	// After its equals: pods that came at the same time keep their order.
	at, _ := slices.BinarySearchFunc(s.active, pod, func(other, pod *Pod) int { return cmp.Or(queueOrder(other, pod), -1) })
	s.active = slices.Insert(s.active, at, pod)
}

// reactivate brings the waiting pods back that a condition means.
func (s *settlement) reactivate(means func(*Pod) bool) {
	waiting := s.waiting
	s.waiting = nil
	for _, pod := range waiting {
		if means(pod) {
			s.activate(pod)
		} else {
			s.waiting = append(s.waiting, pod)
		}
	}
}

func (s *settlement) stopAt(pod *Pod, node string, after time.Duration) {
	e := end{pod, node, after}
	at, _ := slices.BinarySearchFunc(s.ends, e, func(other, e end) int { return cmp.Or(cmp.Compare(other.after, e.after), -1) })
	s.ends = slices.Insert(s.ends, at, e)
}

// drain tries every active pod.
func (s *settlement) drain() {
	for len(s.active) > 0 {
		pod := s.active[0]
		s.active = s.active[1:]
		decision := s.c.Schedule(pod)
		if s.Watch != nil {
			s.Watch(Step{Pod: pod, Decision: decision, After: s.now})
		}
		fate := s.fates[pod]
		fate.Approximate = decision.Approximate
		switch decision.Kind {
		case Bound:
			s.c.AddPod(pod, decision.Node)
			fate.Kind, fate.Node, fate.After = Bound, decision.Node, s.now
			// It may be what others want to be near to, or what evens out the spread that keeps others waiting.
			s.reactivate(func(other *Pod) bool { return len(other.affinity) > 0 || len(other.arrival.hard) > 0 })
		case Preempts:
			s.preempt(pod, decision, fate)
		case Gated:
			fate.Kind = Gated
		case Unschedulable:
			if !s.c.awaits(pod) {
				s.c.Denominate(pod)
			}
			s.waiting = append(s.waiting, pod)
		}
	}
}

func (s *settlement) preempt(pod *Pod, decision Decision, fate *Fate) {
	var nominated []*Pod
	for _, other := range s.waiting {
		if s.c.Nominated(other) != "" {
			nominated = append(nominated, other)
		}
	}
	for _, victim := range decision.Victims {
		if !s.c.terminating(victim, decision.Node) {
			s.stopAt(victim, decision.Node, s.now+grace(victim))
			fate.Evicted = append(fate.Evicted, victim)
		}
	}
	s.c.Preempt(pod, decision.Node, decision.Victims)
	// Those that lost their nomination look for another place at once.
	s.reactivate(func(other *Pod) bool { return slices.Contains(nominated, other) && s.c.Nominated(other) == "" })
	s.waiting = append(s.waiting, pod)
}

// stop lets the next terminating pods end; false when there are none.
func (s *settlement) stop() bool {
	if len(s.ends) == 0 {
		return false
	}
	s.now = s.ends[0].after
	for len(s.ends) > 0 && s.ends[0].after == s.now {
		e := s.ends[0]
		s.ends = s.ends[1:]
		s.c.RemovePod(e.pod, e.node)
		if s.Replace == nil {
			continue
		}
		if pod := s.Replace(e.pod); pod != nil {
			s.join(pod)
		}
	}
	s.reactivate(func(*Pod) bool { return true })
	return true
}
