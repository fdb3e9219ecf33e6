package topology

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// numbers are how much of a request fits into a domain, and later how much of it the domain is given.
type numbers struct {
	pods, slices int32
	// leaders is 1 if the domain can take the leader, and the other two are what fits beside it.
	leaders, podsWithLeader, slicesWithLeader int32
}

// exclusions counts leaves that cannot take a pod, by reason.
type exclusions struct {
	nodes, selector, affinity, domain int
	taints                            map[string]int
	resources                         map[corev1.ResourceName]int
}

// text is how Kueue appends them to a message; empty without any.
func (x *exclusions) text() string {
	var parts []string
	count := func(name string, n int) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s: %d", name, n))
		}
	}
	count("nodeSelector", x.selector)
	count("affinity", x.affinity)
	count("topologyDomain", x.domain)
	for taint, n := range x.taints {
		count(fmt.Sprintf("taint %q", taint), n)
	}
	for resource, n := range x.resources {
		count(fmt.Sprintf("resource %q", resource), n)
	}
	if len(parts) == 0 {
		return ""
	}
	slices.Sort(parts)
	return fmt.Sprintf(". Total nodes: %d; excluded: %s", x.nodes, strings.Join(parts, ", "))
}

// matching is the leaves that the pods of a kind may go to, and why they may not go to the others.
type matching struct {
	// key is equal for pods of the same kind.
	key      string
	leaves   []int
	excluded exclusions
}

// match finds the leaves that a pod set's pods may go to. Where a leaf is not a node, pods may go to all.
func (c *Capacity) match(r *Request) (matching, string) {
	var key string
	if c.tree.byHost {
		selection, err := json.Marshal([]any{r.NodeSelector, r.NodeAffinity, r.Tolerations})
		if err != nil {
			return matching{}, err.Error()
		}
		key = string(selection)
	}
	if found, known := c.matching[key]; known {
		return found, ""
	}
	m := matching{key: key, excluded: exclusions{nodes: len(c.tree.leaves)}}
	if !c.tree.byHost {
		for i := range c.tree.leaves {
			m.leaves = append(m.leaves, i)
		}
		c.matching[key] = m
		return m, ""
	}
	selector, err := labels.ValidatedSelectorFromSet(r.NodeSelector)
	if err != nil {
		return matching{}, fmt.Sprintf("invalid node selectors: %s, reason: %s", r.NodeSelector, err)
	}
	var affinity *nodeaffinity.NodeSelector
	if r.NodeAffinity != nil {
		if affinity, err = nodeaffinity.NewNodeSelector(r.NodeAffinity); err != nil {
			return matching{}, fmt.Sprintf("invalid affinity node selectors: %s, reason: %s", r.NodeAffinity, err)
		}
	}
	tolerations := slices.Concat(r.Tolerations, c.tolerations)
	for i := range c.tree.leaves {
		node := c.tree.leaves[i].node
		if taint, bad := untolerated(node.Taints, tolerations); bad {
			if m.excluded.taints == nil {
				m.excluded.taints = map[string]int{}
			}
			m.excluded.taints[taint.ToString()]++
			continue
		}
		if !selector.Matches(labels.Set(node.Labels)) {
			m.excluded.selector++
			continue
		}
		if affinity != nil && !affinity.Match(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name, Labels: node.Labels}}) {
			m.excluded.affinity++
			continue
		}
		m.leaves = append(m.leaves, i)
	}
	c.matching[key] = m
	return m, ""
}

func untolerated(taints []corev1.Taint, tolerations []corev1.Toleration) (corev1.Taint, bool) {
	return corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), taints, tolerations, func(t *corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
	}, true)
}

// used is what pod sets placed earlier take of leaves, by their ID.
type taken map[string]Units

func (t taken) add(a *Assignment, perPod Units) {
	if a == nil {
		return
	}
	for _, d := range a.Domains {
		id := ID(d.Values)
		if t[id] == nil {
			t[id] = Units{}
		}
		t[id].add(perPod.withPod(), int64(d.Count))
	}
}

// fill works out the numbers of all domains (Kueue's fillInCounts): of the leaves from their capacity, of the others
// from those below them.
func (c *Capacity) fill(s *scene, workers, leader *Request) string {
	m, why := c.match(workers)
	if why != "" {
		return why
	}
	if leader == nil && len(s.taken) == 0 && s.within == "" {
		c.refill(s, &m, workers)
		return ""
	}
	clear(c.numbers)
	s.excluded = m.excluded
	s.excluded.resources = nil
	leaves := m.leaves
	if s.within != "" {
		leaves = nil
		for _, at := range m.leaves {
			if id := ID(c.tree.domains[at].values); id == s.within || strings.HasPrefix(id, s.within+",") {
				leaves = append(leaves, at)
			} else {
				s.excluded.domain++
			}
		}
	}
	limits := make([]corev1.ResourceName, len(c.tree.leaves))
	c.fillLeaves(s, leaves, workers.PerPod.withPod(), leader, limits)
	for _, at := range leaves {
		if c.numbers[at].pods == 0 {
			if s.excluded.resources == nil {
				s.excluded.resources = map[corev1.ResourceName]int{}
			}
			s.excluded.resources[limits[at]]++
		}
	}
	for _, root := range c.tree.at[0] {
		c.fillAbove(s.plan, root)
	}
	return ""
}

// fillLeaves fills a resource at a time, in the order of their names: of several that are short to the same degree, the
// first is the one that limits.
func (c *Capacity) fillLeaves(s *scene, leaves []int, perPod Units, leader *Request, limits []corev1.ResourceName) {
	for _, at := range leaves {
		c.numbers[at].pods = math.MaxInt32
	}
	for _, resource := range slices.Sorted(maps.Keys(perPod)) {
		amount := perPod[resource]
		room := s.room(c, resource)
		for _, at := range leaves {
			if n := times(room(at), amount); n < c.numbers[at].pods || limits[at] == "" {
				c.numbers[at].pods, limits[at] = n, resource
			}
		}
	}
	for _, at := range leaves {
		n := &c.numbers[at]
		n.podsWithLeader = n.pods
	}
	if leader == nil {
		return
	}
	beside := leader.PerPod.withPod()
	for _, at := range leaves {
		n := &c.numbers[at]
		here := func(resource corev1.ResourceName) int64 { return s.room(c, resource)(at) }
		if beside.countIn(here) == 0 {
			continue
		}
		n.leaders = 1
		n.podsWithLeader = perPod.countIn(func(resource corev1.ResourceName) int64 { return saturatingAdd(here(resource), -beside[resource]) })
	}
}

// room gives what is free of a resource in a leaf.
func (s *scene) room(c *Capacity, resource corev1.ResourceName) func(leaf int) int64 {
	free, used := c.free[resource], c.used[resource]
	if s.empty {
		used = nil
	}
	return func(at int) int64 {
		var room int64
		if free != nil {
			room = free[at]
		}
		if used != nil {
			room = saturatingAdd(room, -used[at])
		}
		if len(s.taken) > 0 {
			room = saturatingAdd(room, -s.taken[c.tree.leaves[at].id][resource])
		}
		return room
	}
}

// fillAbove sums up what is below a domain (Kueue's fillInCountsHelper).
func (c *Capacity) fillAbove(p *plan, at int) {
	for _, child := range c.tree.domains[at].children {
		c.fillAbove(p, child)
	}
	c.numbers[at] = c.tree.sum(p, c.numbers, at)
}

// sum is the numbers of a domain by those of its children. A leader takes from the sum what it takes from the child where
// it costs least. Children divided into inner slices count in whole slices.
func (t *Tree) sum(p *plan, of []numbers, at int) numbers {
	d := &t.domains[at]
	if len(d.children) == 0 {
		n := of[at]
		if d.level == p.sliceLevel {
			n.slices, n.slicesWithLeader = n.pods/p.size, n.podsWithLeader/p.size
		}
		return n
	}
	inner := p.inner[d.level+1]
	var total numbers
	podsLost, slicesLost := int32(math.MaxInt32), int32(math.MaxInt32)
	for _, child := range d.children {
		below := of[child]
		if inner > 0 {
			below.pods, below.podsWithLeader = below.pods/inner*inner, below.podsWithLeader/inner*inner
		}
		total.pods += below.pods
		total.slices += below.slices
		total.leaders = max(total.leaders, below.leaders)
		if p.leaders == 0 || below.leaders > 0 {
			podsLost = min(podsLost, below.pods-below.podsWithLeader)
			slicesLost = min(slicesLost, below.slices-below.slicesWithLeader)
		}
	}
	if p.leaders == 0 || total.leaders > 0 {
		total.podsWithLeader, total.slicesWithLeader = total.pods-podsLost, total.slices-slicesLost
	}
	if d.level == p.sliceLevel {
		total.slices, total.slicesWithLeader = total.pods/p.size, total.podsWithLeader/p.size
	}
	return total
}
