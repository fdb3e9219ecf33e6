package topology

import "slices"

// share is what domains are to take together.
type share struct {
	count, leaders int32 // of pods
	size           int32 // of a slice
	bySlices       bool  // in whole slices
}

// units is the number of slices, or of pods.
func (s share) units() int32 {
	if s.bySlices {
		return s.count / s.size
	}
	return s.count
}

// perUnit is the number of pods of a slice, or 1.
func (s share) perUnit() int32 {
	if s.bySlices {
		return s.size
	}
	return 1
}

// take gives pods to as few of the domains as possible, in their order, and returns those that got some: their numbers
// are from then on what they were given (Kueue's updateCountsToMinimumGeneric). The domains have room for all.
func (c *Capacity) take(domains []int, s share, p *plan) []int {
	domains = c.leaderFirst(domains, s)
	var taken []int
	left, leaders := s.units(), s.leaders
	for i, d := range domains {
		if leaders > 0 {
			d, done := c.takeWithLeader(domains[i:], &left, &leaders, s, p)
			if taken = append(taken, d); done {
				return taken
			}
			continue
		}
		if !p.unconstrained && c.numbers[d].room(s.bySlices) >= left {
			d = c.bestFit(domains[i:], left, 0, s.bySlices) // it is the last
		}
		n := &c.numbers[d]
		n.leaders = 0
		given := min(n.room(s.bySlices), left)
		done := n.room(s.bySlices) >= left
		n.give(given, s)
		left -= given
		if taken = append(taken, d); done {
			return taken
		}
	}
	return nil
}

// takeWithLeader gives pods to the first of some domains beside the leader.
func (c *Capacity) takeWithLeader(domains []int, left, leaders *int32, s share, p *plan) (int, bool) {
	d := domains[0]
	enough := func() bool {
		return c.numbers[d].roomWithLeader(s.bySlices) >= *left && c.numbers[d].leaders >= *leaders
	}
	if !p.unconstrained && enough() {
		d = c.bestFit(domains, *left, *leaders, s.bySlices)
	}
	n := &c.numbers[d]
	if enough() {
		n.leaders = *leaders
		n.give(*left, s)
		return d, true
	}
	given := min(n.roomWithLeader(s.bySlices), *left)
	if s.bySlices {
		n.slicesWithLeader = given
	} else {
		n.podsWithLeader = given
	}
	n.leaders = min(n.leaders, *leaders)
	n.give(given, s)
	*leaders -= n.leaders
	*left -= given
	return d, false
}

// give sets what a domain takes.
func (n *numbers) give(units int32, s share) {
	if s.bySlices {
		n.slices = units
	}
	n.pods = units * s.perUnit()
}

// leaderFirst puts the first domain to the front that can take the leader so that what remains is enough for the
// workers (Kueue's prioritizeLeaderDomain).
func (c *Capacity) leaderFirst(domains []int, s share) []int {
	if s.leaders == 0 || len(domains) < 2 {
		return domains
	}
	var room int32
	for _, d := range domains {
		room += c.numbers[d].room(s.bySlices)
	}
	for i, d := range domains {
		n := &c.numbers[d]
		lost := n.room(s.bySlices) - n.roomWithLeader(s.bySlices)
		if n.leaders < s.leaders || room-lost < s.units() {
			continue
		}
		ordered := slices.Clone(domains)
		copy(ordered[1:i+1], domains[:i])
		ordered[0] = d
		return ordered
	}
	return domains
}
