package topology

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// filling is how much of a kind of request fits into each domain, kept from one search to the next: many workloads ask
// for the same, and between two searches only few leaves change.
type filling struct {
	numbers  []numbers
	resource []corev1.ResourceName // that limits a leaf
	excluded map[corev1.ResourceName]int
	eligible []bool // leaves that the pods may go to
	// seen is how many of the capacity's changes are in it.
	seen int
}

// mostFillings bounds the memory that fillings take.
const mostFillings = 100

// forget drops the fillings after a change that is not noted.
func (c *Capacity) forget() { c.fillings, c.changes = nil, nil }

// note has the fillings look at a leaf again.
func (c *Capacity) note(leaf int) {
	if len(c.fillings) == 0 {
		return
	}
	if len(c.changes) >= 4*len(c.tree.leaves) {
		c.forget()
		return
	}
	c.changes = append(c.changes, leaf)
}

// refill fills the numbers for a request without a leader, as things are.
func (c *Capacity) refill(s *scene, m *matching, r *Request) {
	perPod := r.PerPod.withPod()
	var key strings.Builder
	fmt.Fprint(&key, s.empty, s.sliceLevel, s.size, s.inner, perPod, m.key) // fmt orders maps by their keys
	f := c.fillings[key.String()]
	if f == nil {
		if len(c.fillings) >= mostFillings {
			c.forget()
		}
		if c.fillings == nil {
			c.fillings = map[string]*filling{}
		}
		f = c.filling(s, m, perPod)
		c.fillings[key.String()] = f
	} else if !s.empty {
		c.update(f, s, perPod)
	}
	f.seen = len(c.changes)
	copy(c.numbers, f.numbers)
	s.excluded = m.excluded
	s.excluded.resources = maps.Clone(f.excluded)
}

// filling fills all domains.
func (c *Capacity) filling(s *scene, m *matching, perPod Units) *filling {
	f := &filling{
		resource: make([]corev1.ResourceName, len(c.tree.leaves)), excluded: map[corev1.ResourceName]int{}, eligible: make([]bool, len(c.tree.leaves)),
	}
	clear(c.numbers)
	c.fillLeaves(s, m.leaves, perPod, nil, f.resource)
	for _, at := range m.leaves {
		f.eligible[at] = true
		if c.numbers[at].pods == 0 {
			f.excluded[f.resource[at]]++
		}
	}
	for _, root := range c.tree.at[0] {
		c.fillAbove(s.plan, root)
	}
	f.numbers = slices.Clone(c.numbers)
	return f
}

// update looks again at the leaves that have changed, and at the domains that they lie in.
func (c *Capacity) update(f *filling, s *scene, perPod Units) {
	if f.seen == len(c.changes) {
		return
	}
	names := slices.Sorted(maps.Keys(perPod))
	rooms := make([]func(int) int64, len(names))
	for i, name := range names {
		rooms[i] = s.room(c, name)
	}
	for _, at := range c.changes[f.seen:] {
		if !f.eligible[at] {
			continue
		}
		if f.numbers[at].pods == 0 {
			if f.excluded[f.resource[at]]--; f.excluded[f.resource[at]] == 0 {
				delete(f.excluded, f.resource[at])
			}
		}
		pods := int32(math.MaxInt32)
		f.resource[at] = ""
		for i, name := range names {
			if n := times(rooms[i](at), perPod[name]); n < pods || f.resource[at] == "" {
				pods, f.resource[at] = n, name
			}
		}
		if pods == 0 {
			f.excluded[f.resource[at]]++
		}
		f.numbers[at] = numbers{pods: pods, podsWithLeader: pods}
		for d := at; d >= 0; d = c.tree.domains[d].parent {
			f.numbers[d] = c.tree.sum(s.plan, f.numbers, d)
		}
	}
}
