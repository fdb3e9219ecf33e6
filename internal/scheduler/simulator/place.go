package simulator

import (
	"cmp"
	"slices"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/placement"
)

// enqueue adds a pod to the scheduler's queue.
func (s *simulation) enqueue(p *pod) {
	h := p.shape
	h.waiting.add(p)
	h.news = append(h.news, p)
	s.open(h)
}

// list adds a shape to those with pending pods.
func (s *simulation) list(h *shape) {
	if !h.listed {
		h.listed = true
		s.listed = append(s.listed, h)
	}
}

// open makes the pods of a shape schedulable again.
func (s *simulation) open(h *shape) {
	s.list(h)
	if !h.open {
		h.open = true
		s.opened = append(s.opened, h)
	}
}

// dequeue removes a pod from the queues that it is in.
func (s *simulation) dequeue(p *pod) {
	p.shape.waiting.remove(p)
	p.shape.awaiting.remove(p)
	s.ready = slices.DeleteFunc(s.ready, func(other *pod) bool { return other == p })
}

// reopen retries the shapes that may fit on nodes that are new, or that pods have left.
func (s *simulation) reopen() {
	if len(s.touched) == 0 {
		return
	}
	s.listed = slices.DeleteFunc(s.listed, func(h *shape) bool {
		h.listed = !h.waiting.empty() || !h.awaiting.empty()
		return !h.listed
	})
	for _, h := range s.listed {
		if h.wide || slices.ContainsFunc(s.touched, h.mayFit) {
			h.awaitingTried = false
			s.open(h)
		}
	}
	for _, n := range s.touched {
		n.touched = false
	}
	s.touched = s.touched[:0]
}

// mayFit reports whether a pod of the shape would fit on a node without all pods of lower priority. If not,
// the scheduler need not be called.
func (h *shape) mayFit(n *node) bool {
	if n.lost {
		return false
	}
	for i, request := range h.requests {
		if request == 0 || request <= n.free[i] {
			continue
		}
		room := n.free[i]
		for _, p := range n.pods {
			if p.shape.priority < h.priority {
				room += p.shape.requests[i]
			}
		}
		if request > room {
			return false
		}
	}
	return true
}

// schedule tries the pending pods, by priority and then by age, and reports whether anything
// has changed.
func (s *simulation) schedule() (acted bool) {
	for {
		s.reopen()
		p := s.candidate()
		if p == nil {
			return acted
		}
		acted = s.try(p) || acted
	}
}

// candidate is the pod to be tried next; nil when there is none.
func (s *simulation) candidate() *pod {
	var best *pod
	consider := func(p *pod) {
		if best == nil || cmp.Or(cmp.Compare(best.shape.priority, p.shape.priority), cmp.Compare(p.id, best.id)) < 0 {
			best = p
		}
	}
	for _, p := range s.ready {
		consider(p)
	}
	kept := s.opened[:0]
	for _, h := range s.opened {
		switch {
		case !h.awaiting.empty() && !h.awaitingTried:
			consider(h.awaiting.first())
		case !h.waiting.empty():
			consider(h.waiting.first())
		default:
			h.open = false
			continue
		}
		kept = append(kept, h)
	}
	s.opened = kept
	return best
}

// try schedules a pod and carries out the scheduler's decision.
func (s *simulation) try(p *pod) (acted bool) {
	h := p.shape
	waited := p.victims > 0
	if at := slices.Index(s.ready, p); at >= 0 {
		s.ready = slices.Delete(s.ready, at, at+1)
		h.waiting.add(p)
		s.list(h)
	}
	s.tries++
	decision := s.cluster.Schedule(p.place)
	switch decision.Kind {
	case placement.Bound:
		s.bind(p, s.nodes[decision.Node])
		return true
	case placement.Preempts:
		s.preempt(p, decision)
		return true
	}
	if waited {
		h.awaitingTried = true
		return false
	}
	h.open = false
	s.opened = slices.DeleteFunc(s.opened, func(other *shape) bool { return other == h })
	s.refuse(h, p)
	return false
}

// preempt stops the victims of a pod.
func (s *simulation) preempt(p *pod, decision placement.Decision) {
	victims := make([]*pod, len(decision.Victims))
	for i, place := range decision.Victims {
		victims[i] = s.byPlace[place]
	}
	s.note(p, func() string { return s.cluster.Explain(p.place).Message })
	s.cluster.Preempt(p.place, decision.Node, decision.Victims)
	p.shape.waiting.remove(p)
	p.shape.awaiting.add(p)
	p.victims = len(victims)
	for _, v := range victims {
		v.waiters = append(v.waiters, p)
	}
	for _, v := range victims {
		s.stop(v, preempted)
	}
}

// refuse marks the pods of a shape as unschedulable.
func (s *simulation) refuse(h *shape, p *pod) {
	if s.log == nil {
		h.news = h.news[:0]
		return
	}
	if len(h.news) == 0 {
		return
	}
	h.message = s.cluster.Explain(p.place).Message
	for _, waiting := range h.news {
		if waiting.phase == pending {
			s.note(waiting, func() string { return h.message })
		}
	}
	h.news = h.news[:0]
}

// note logs why a pod is pending, once for each reason.
func (s *simulation) note(p *pod, why func() string) {
	if s.log == nil || p.waits {
		return
	}
	p.waits, p.noted = true, why()
	s.logPod(p)
}
