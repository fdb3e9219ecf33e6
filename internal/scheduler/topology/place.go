package topology

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/tas"
)

// Assignment is where the pods of a set go.
type Assignment struct {
	// Levels of which Domains have values: all, or the host alone where that is the lowest.
	Levels  []string
	Domains []tas.Domain
}

// Options of Place.
type Options struct {
	// Empty looks at the tree as if all workloads with a topology were gone.
	Empty bool
	// Taken is what other pod sets of the workload, in flavors by host, take of hosts; Place adds to it. Nil: nothing.
	Taken Taken
	// Broken is a host from which the pods of Admitted, the workload's assignments by pod set, must go; "": none.
	Broken   string
	Admitted map[string]*Assignment
}

// Taken is what pod sets of a workload take of hosts.
type Taken = taken

// Failure is why there is no place.
type Failure struct {
	PodSet string
	// Reason as Kueue writes it.
	Reason string
}

// scene is what a search sees of a capacity.
type scene struct {
	*plan
	taken taken
	empty bool
	// within is the ID of the domain that the pods must go to; "": anywhere.
	within string
}

// Place finds domains for the pod sets of a workload in one flavor (Kueue's FindTopologyAssignmentsForFlavor). Usage is
// not changed.
func (c *Capacity) Place(requests []Request, options Options) (map[string]*Assignment, *Failure) {
	placed := map[string]*Assignment{}
	all := options.Taken
	if all == nil {
		all = taken{}
	}
	for _, group := range groups(requests) {
		if options.Broken != "" {
			if failure := c.replaceGroup(group, options, all, placed); failure != nil {
				return placed, failure
			}
			continue
		}
		workers, leader := leaderOf(group)
		found, why := c.find(workers, leader, scene{taken: all, empty: options.Empty})
		if why != "" {
			// Kueue tells it of all pod sets of the group, in no order.
			return placed, &Failure{PodSet: firstName(group), Reason: why}
		}
		for i := range group {
			r := &group[i]
			placed[r.PodSet] = found[r.PodSet]
			all.add(found[r.PodSet], r.PerPod)
		}
	}
	return placed, nil
}

func firstName(group []Request) string {
	names := make([]string, len(group))
	for i := range group {
		names[i] = group[i].PodSet
	}
	return slices.Min(names)
}

// groups are the requests that are placed together, in their order.
func groups(requests []Request) [][]Request {
	var all [][]Request
	named := map[string]int{}
	for _, r := range requests {
		at, known := named[r.Group]
		if r.Group == "" || !known {
			at = len(all)
			all = append(all, nil)
			if r.Group != "" {
				named[r.Group] = at
			}
		}
		all[at] = append(all[at], r)
	}
	return all
}

// leaderOf tells the leader of a group, its smaller pod set, from the workers.
func leaderOf(group []Request) (workers, leader *Request) {
	switch {
	case len(group) < 2:
		return &group[0], nil
	case group[1].Count > group[0].Count:
		return &group[1], &group[0]
	}
	return &group[0], &group[1]
}

// find is Kueue's findTopologyAssignment. First it works out how many pods and slices fit into every domain. Then it
// looks for the narrowest level from the requested one upwards (or only there, if it is required) at which one domain,
// or the fewest, take them all, and goes down from there, at each level to as few domains as possible.
func (c *Capacity) find(workers, leader *Request, s scene) (map[string]*Assignment, string) {
	p, why := c.tree.plan(workers)
	if why != "" {
		return nil, why
	}
	if leader != nil {
		p.leaders = 1 // a leader's pod set has one pod
	}
	s.plan = p
	if why := c.fill(&s, workers, leader); why != "" {
		return nil, why
	}
	level, domains, why := c.fitLevel(p, p.level)
	if why != "" {
		return nil, why
	}
	domains = c.descend(p, level, c.take(domains, share{p.count, p.leaders, p.size, true}, p))
	found := map[string]*Assignment{workers.PodSet: c.assignment(domains, func(n *numbers) int32 { return n.pods })}
	if leader != nil {
		found[leader.PodSet] = c.assignment(domains, func(n *numbers) int32 { return n.leaders })
	}
	return found, ""
}

// descend goes from the domains at a level down to leaves. Above the level of the slices it may leave a domain for a
// better one that another parent has; below it every domain keeps what its parent was given.
func (c *Capacity) descend(p *plan, level int, domains []int) []int {
	lowest := len(c.tree.levels) - 1
	for ; level < min(lowest, p.sliceLevel); level++ {
		var children []int
		for _, d := range domains {
			children = append(children, c.tree.domains[d].children...)
		}
		domains = c.take(c.sorted(children, p), share{p.count, p.leaders, p.size, true}, p)
	}
	for ; level < lowest; level++ {
		size := max(1, p.inner[level+1])
		var below []int
		for _, d := range domains {
			children := c.sorted(c.tree.domains[d].children, p)
			if size > 1 {
				for _, child := range children {
					n := &c.numbers[child]
					n.slices, n.slicesWithLeader = n.pods/size, n.podsWithLeader/size
				}
			}
			of := c.numbers[d]
			below = append(below, c.take(children, share{of.pods, of.leaders, size, size > 1}, p)...)
		}
		domains = below
	}
	return domains
}

// assignment lists what domains were given.
func (c *Capacity) assignment(domains []int, count func(*numbers) int32) *Assignment {
	domains = slices.Clone(domains)
	slices.SortFunc(domains, c.byValues)
	from := 0
	if c.tree.byHost {
		from = len(c.tree.levels) - 1
	}
	a := &Assignment{Levels: c.tree.levels[from:]}
	for _, d := range domains {
		if n := count(&c.numbers[d]); n > 0 {
			a.Domains = append(a.Domains, tas.Domain{Values: c.tree.domains[d].values[from:], Count: n})
		}
	}
	return a
}

// byValues orders domains of a level.
func (c *Capacity) byValues(a, b int) int { return cmp.Compare(c.tree.rank[a], c.tree.rank[b]) }

// sorted orders domains in the order in which they are taken: those with room for the most slices first, or for the
// fewest without a constraint; then the fullest.
func (c *Capacity) sorted(domains []int, p *plan) []int {
	domains = slices.Clone(domains)
	slices.SortFunc(domains, func(a, b int) int {
		x, y := &c.numbers[a], &c.numbers[b]
		return cmp.Or(p.compare(x.slices, y.slices), cmp.Compare(x.pods, y.pods), c.byValues(a, b))
	})
	return domains
}

// forLeader is the order of sorted with those first that can take the leader, by what fits beside it.
func (c *Capacity) forLeader(p *plan) func(a, b int) int {
	return func(a, b int) int {
		x, y := &c.numbers[a], &c.numbers[b]
		return cmp.Or(
			cmp.Compare(y.leaders, x.leaders),
			p.compare(x.slicesWithLeader, y.slicesWithLeader),
			cmp.Compare(x.podsWithLeader, y.podsWithLeader),
			c.byValues(a, b),
		)
	}
}

// compare orders by room: least first without a constraint, else most first.
func (p *plan) compare(a, b int32) int {
	if p.unconstrained {
		return cmp.Compare(a, b)
	}
	return cmp.Compare(b, a)
}

// fitLevel finds the domains that the whole goes to (Kueue's findLevelWithFitDomains): one at the level, or else, unless
// the level is required, one at a level above, or else several at the highest.
func (c *Capacity) fitLevel(p *plan, level int) (int, []int, string) {
	if len(c.tree.at[level]) == 0 {
		return 0, nil, "no topology domains at level: " + c.tree.levels[level]
	}
	domains, order := c.tree.at[level], c.forLeader(p)
	wanted := p.count / p.size
	top := slices.MinFunc(domains, order)
	if !p.unconstrained && c.holds(top, wanted, p.leaders) {
		top = c.narrowest(domains, wanted, p.leaders, order)
	}
	if p.unconstrained {
		if d, fits := c.leastFree(domains, wanted, p.leaders, order); fits {
			return level, []int{d}, ""
		}
		if p.required {
			return 0, nil, c.doesNotFit(p, level, c.numbers[slices.MaxFunc(domains, order)].pods, wanted)
		}
	}
	switch {
	case c.holds(top, wanted, p.leaders):
		return level, []int{top}, ""
	case p.required:
		return 0, nil, c.doesNotFit(p, level, c.numbers[top].slices, wanted)
	case level > 0 && !p.unconstrained:
		return c.fitLevel(p, level-1)
	}
	return c.several(p, level, slices.SortedFunc(slices.Values(domains), order), wanted)
}

// holds reports whether a domain has room for slices beside the leaders.
func (c *Capacity) holds(d int, wanted, leaders int32) bool {
	return c.numbers[d].slicesWithLeader >= wanted && c.numbers[d].leaders >= leaders
}

// leastFree is the first domain, in an order, that has room for the whole.
func (c *Capacity) leastFree(domains []int, wanted, leaders int32, order func(a, b int) int) (int, bool) {
	first := -1
	for _, d := range domains {
		if c.roomFor(d, leaders) >= wanted && (first < 0 || order(d, first) < 0) {
			first = d
		}
	}
	return first, first >= 0
}

// narrowest is the domain with the least room that is enough for slices, the first in an order among several. There is one.
func (c *Capacity) narrowest(domains []int, wanted, leaders int32, order func(a, b int) int) int {
	best, least := -1, int32(0)
	for _, d := range domains {
		room := c.roomFor(d, leaders)
		if room >= wanted && (best < 0 || room < least || room == least && order(d, best) < 0) {
			best, least = d, room
		}
	}
	return best
}

// roomFor is how many slices fit into a domain, beside leaders if there are any; -1 if it cannot take these.
func (c *Capacity) roomFor(d int, leaders int32) int32 {
	n := &c.numbers[d]
	switch {
	case n.leaders < leaders:
		return -1
	case leaders > 0:
		return n.slicesWithLeader
	}
	return n.slices
}

// several takes domains of a level one after the other, the leader's first.
func (c *Capacity) several(p *plan, level int, sorted []int, wanted int32) (int, []int, string) {
	sorted = c.leaderFirst(sorted, share{p.count, p.leaders, p.size, true})
	var found []int
	left, leaders, next := wanted, p.leaders, 0
	for ; leaders > 0 && next < len(sorted) && c.numbers[sorted[next]].leaders > 0; next++ {
		d := sorted[next]
		if !p.unconstrained && c.numbers[d].slicesWithLeader >= left {
			d = c.bestFit(sorted[next:], left, leaders, true)
		}
		found = append(found, d)
		leaders -= c.numbers[d].leaders
		left -= c.numbers[d].slicesWithLeader
	}
	if leaders > 0 {
		return 0, nil, c.doesNotFit(p, level, p.leaders-leaders, wanted)
	}
	rest := c.sorted(sorted[next:], p)
	for i := 0; left > 0 && i < len(rest); i++ {
		d := rest[i]
		if !p.unconstrained && c.numbers[d].slices >= left {
			d = c.bestFit(rest[i:], left, 0, true)
		}
		found = append(found, d)
		left -= c.numbers[d].slices
	}
	if left > 0 {
		return 0, nil, c.doesNotFit(p, level, wanted-left, wanted)
	}
	return level, found, ""
}

// bestFit is the first of the domains with the least room that is enough, for slices or for pods; the first of all if
// there is none.
func (c *Capacity) bestFit(domains []int, wanted, leaders int32, bySlices bool) int {
	best, least, found := domains[0], int32(0), false
	for _, d := range domains {
		n := &c.numbers[d]
		if n.leaders < leaders {
			continue
		}
		room := n.room(bySlices)
		if leaders > 0 {
			room = n.roomWithLeader(bySlices)
		}
		if room >= wanted && (!found || room < least) {
			best, least, found = d, room, true
		}
	}
	return best
}

func (n *numbers) room(bySlices bool) int32 {
	if bySlices {
		return n.slices
	}
	return n.pods
}

func (n *numbers) roomWithLeader(bySlices bool) int32 {
	if bySlices {
		return n.slicesWithLeader
	}
	return n.podsWithLeader
}

// doesNotFit is Kueue's message that only some slices, or pods, fit.
func (c *Capacity) doesNotFit(p *plan, level int, fit, wanted int32) string {
	if len(p.layers) > 0 {
		return c.layersDoNotFit(p, level)
	}
	unit := "slice"
	if p.size == 1 {
		unit = "pod"
	}
	if fit == 0 {
		return fmt.Sprintf("topology %q doesn't allow to fit any of %d %s(s)", c.name, wanted, unit) + p.excluded.text()
	}
	return fmt.Sprintf("topology %q allows to fit only %d out of %d %s(s)", c.name, fit, wanted, unit) + p.excluded.text()
}

// layersDoNotFit tells for each layer of slices how many fit into the domain that takes most.
func (c *Capacity) layersDoNotFit(p *plan, level int) string {
	best := -1
	for _, d := range c.tree.at[level] {
		if best < 0 || c.numbers[d].slices > c.numbers[best].slices ||
			c.numbers[d].slices == c.numbers[best].slices && c.id(d) < c.id(best) {
			best = d
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "topology %q doesn't allow to fit", c.name)
	for _, layer := range p.layers {
		if at := c.tree.index(layer.Topology); at >= 0 {
			fmt.Fprintf(&b, "; %d/%d slice(s) fit on level %s", c.slicesBelow(best, at, layer.Size), p.count/layer.Size, layer.Topology)
		}
	}
	return b.String() + p.excluded.text()
}

func (c *Capacity) id(d int) string {
	if d < len(c.tree.leaves) {
		return c.tree.leaves[d].id
	}
	return ID(c.tree.domains[d].values)
}

// slicesBelow counts the slices of a size that fit into the domains of a level below a domain.
func (c *Capacity) slicesBelow(d, level int, size int32) int32 {
	if c.tree.domains[d].level == level {
		return c.numbers[d].pods / size
	}
	var total int32
	for _, child := range c.tree.domains[d].children {
		total += c.slicesBelow(child, level, size)
	}
	return total
}
