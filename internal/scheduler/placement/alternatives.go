package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Prospect is everything that kube-scheduler may do with one pod.
type Prospect struct {
	Kind Kind
	// Options (Bound, Preempts) that are possible; one of them will happen. In the order of the nodes.
	Options []Option
	// Sampled: kube-scheduler looks at a part of so many nodes only, and which part is unknown; the options are those
	// of every part.
	Sampled bool
	// Approximate lists what is not modelled, or where there are too many options to name all.
	Approximate []string
}

// Option is one thing that may happen.
type Option struct {
	// Node is the node that the pod is bound to, or that is reserved for it.
	Node string
	// Victims (Preempts), the most important first.
	Victims []Victim
	// Violations (Preempts) is the number of victims whose disruption budgets do not allow the eviction.
	Violations int
}

// Victim is a pod that is evicted, and pods on its node that are equal to it in everything that counts: any of them may
// be taken instead (each by one victim only).
type Victim struct {
	Pod *Pod
	Or  []*Pod
}

// Alternatives names everything that may become of a pod. It changes no later decision (see reader).
func (c *Cluster) Alternatives(pod *Pod) Prospect {
	if gated(pod) {
		return Prospect{Kind: Gated}
	}
	c = c.reader()
	cy := c.cycle(pod)
	p := Prospect{Kind: Unschedulable, Approximate: slices.Clone(pod.preFilterState.approximate)}
	if at, reserved := c.reserved(pod); reserved && cy.at(at) == feasible {
		p.Kind, p.Options = Bound, []Option{{Node: c.nodes[at].name}}
		return p
	}
	statuses := cy.everywhere()
	var fits []int
	for at, v := range statuses {
		if v == feasible {
			fits = append(fits, at)
		}
	}
	if len(fits) > 0 {
		p.Kind = Bound
		for _, at := range cy.winners(fits, &p) {
			p.Options = append(p.Options, Option{Node: c.nodes[at].name})
		}
		return p
	}
	if !cy.abandoned() && cy.ineligible() == "" {
		cy.evictableInAnyOrder(statuses, &p)
	}
	return p
}

// Fits names the nodes on which the pod fits without evictions, beside the present and the nominated pods. It changes
// no later decision (see reader).
func (c *Cluster) Fits(pod *Pod) []string {
	if gated(pod) {
		return nil
	}
	c = c.reader()
	cy := c.cycle(pod)
	var names []string
	for at, v := range cy.everywhere() {
		if v == feasible {
			names = append(names, c.nodes[at].name)
		}
	}
	return names
}

// winners are the feasible nodes that may come out highest. When only a part of them is compared, a node may win if
// there are enough others, or itself, that do not beat it. Scores that are relative to the nodes compared are taken as
// among all; that they may differ among a part of them is a reason for an approximate answer.
func (cy *cycle) winners(fits []int, p *Prospect) []int {
	if len(fits) == 1 {
		return fits
	}
	compared := min(enough(len(cy.positions())), len(fits))
	scores := slices.Clone(cy.c.scores(cy.pod, fits))
	bar := slices.Sorted(slices.Values(scores))[compared-1]
	p.Sampled = compared < len(fits)
	if p.Sampled && cy.c.relative(cy.pod, fits) {
		p.Approximate = append(p.Approximate, fmt.Sprintf("kube-scheduler compares %d of %d nodes, and scores some of their properties relative to one another", compared, len(fits)))
	}
	var winners []int
	for i, score := range scores {
		if score >= bar {
			winners = append(winners, fits[i])
		}
	}
	return winners
}

// prospective is one outcome on one node.
type prospective struct {
	Option
	at   int
	rank ranking
}

// evictableInAnyOrder adds the ways in which evictions can make room, whatever the order of the budgets.
func (cy *cycle) evictableInAnyOrder(statuses []filterStatus, p *Prospect) {
	orders, complete := cy.budgetOrders()
	budgets, first, found := cy.c.budgets, len(p.Approximate), p.Options
	for order := range orders {
		cy.c.budgets, p.Options, p.Approximate = order, nil, p.Approximate[:first]
		cy.evictable(statuses, p)
		for _, o := range p.Options {
			if !slices.ContainsFunc(found, o.equal) {
				found = append(found, o)
			}
		}
	}
	slices.SortStableFunc(found, func(a, b Option) int { return cmp.Compare(cy.c.position[a.Node], cy.c.position[b.Node]) })
	cy.c.budgets, p.Options = budgets, found
	if !complete && p.Kind == Preempts {
		p.Approximate = append(p.Approximate, fmt.Sprintf("more than %d disruption budgets cover the same pods, and kube-scheduler considers them in no fixed order", mostContested))
	}
}

// equal reports whether two options are one.
func (o Option) equal(other Option) bool {
	return o.Node == other.Node && o.Violations == other.Violations &&
		slices.EqualFunc(o.Victims, other.Victims, func(a, b Victim) bool { return a.Pod == b.Pod && slices.Equal(a.Or, b.Or) })
}

// evictable adds the ways in which evictions can make room. If the order of a node's pods is open (equal priority,
// equal start), it decides which pods the reprieve spares, so that a node has several outcomes. One of them happens
// unless another node certainly has a better one.
func (cy *cycle) evictable(statuses []filterStatus, p *Prospect) {
	potential := 0
	var all []prospective
	var worst []ranking // per node: the least preferable of its outcomes
	for at, v := range statuses {
		if !v.resolvable() {
			continue
		}
		potential++
		outcomes, complete := cy.outcomes(at)
		if len(outcomes) == 0 {
			continue
		}
		if !complete {
			p.Approximate = append(p.Approximate, fmt.Sprintf("node %s has too many pods of equal priority and start to name every set of victims", cy.c.nodes[at].name))
		}
		all = append(all, outcomes...)
		worst = append(worst, slices.MinFunc(outcomes, func(a, b prospective) int { return a.rank.compare(b.rank) }).rank)
	}
	if len(all) == 0 {
		return
	}
	p.Kind = Preempts
	// Among a part of the candidates, an outcome may win when enough of them do not surely beat it.
	compared := min(candidates(potential), len(worst))
	slices.SortFunc(worst, ranking.compare)
	bar := worst[compared-1]
	p.Sampled = compared < len(worst)
	// The search continues until it has found victims whose budgets allow the eviction, if there are any.
	allowed := worst[len(worst)-1].violations == 0
	for _, o := range all {
		if o.rank.compare(bar) >= 0 && (!allowed || o.rank.violations == 0) {
			p.Options = append(p.Options, o.Option)
		}
	}
}

// mostOrders bounds how many orders of a node's equal pods are tried: 6 different pods that all started at once.
const mostOrders = 720

// outcomes are the possible results of evictions on a node. complete is false if there are more than are tried.
func (cy *cycle) outcomes(at int) (outcomes []prospective, complete bool) {
	n, w := cy.c.nodes[at], cy.c.work
	var lower []int
	for i, o := range n.pods {
		if o.pod.Priority < cy.pod.Priority {
			lower = append(lower, i)
		}
	}
	if len(lower) == 0 {
		return nil, true
	}
	slices.SortStableFunc(lower, func(a, b int) int { return importance(n.pods[a].pod, n.pods[b].pod) })
	try := func(order []int) (o prospective, helps bool) {
		o.at = at
		if o.rank, helps = cy.reprieve(n, order); helps {
			o.Option = Option{Node: n.name, Violations: o.rank.violations, Victims: make([]Victim, len(w.victims))}
			for i, victim := range w.victims {
				o.Victims[i].Pod = victim
			}
		}
		return o, helps
	}
	if strict(n, lower) { // the common case: pods differ in priority or start
		if o, helps := try(lower); helps {
			outcomes = []prospective{o}
		}
		return outcomes, true
	}
	alike := cy.alike(n, lower)
	known := map[string]bool{}
	complete = orders(n, lower, alike, mostOrders, func(order []int) {
		o, helps := try(order)
		if !helps {
			return
		}
		// The order also decides which of a budget's pods use its allowance, and so whether the same victims violate
		// it.
		signature := fmt.Sprint(cy.interchange(n, lower, alike, &o.Option), o.rank.violations)
		if !known[signature] {
			known[signature] = true
			outcomes = append(outcomes, o)
		}
	})
	return outcomes, complete
}

// strict reports whether importance leaves no order of some pods, which are sorted by it, open.
func strict(n *node, sorted []int) bool {
	for j := range len(sorted) - 1 {
		if importance(n.pods[sorted[j]].pod, n.pods[sorted[j+1]].pod) == 0 {
			return false
		}
	}
	return true
}

// alike gives indistinguishable pods of equal priority and start the same number, by index in node.pods.
func (cy *cycle) alike(n *node, lower []int) map[int]int {
	kinds := map[int]int{}
	for j, i := range lower {
		kinds[i] = i
		for _, earlier := range lower[:j] {
			if kinds[earlier] == earlier && importance(n.pods[earlier].pod, n.pods[i].pod) == 0 && cy.same(n.pods[earlier].pod, n.pods[i].pod) {
				kinds[i] = earlier
				break
			}
		}
	}
	return kinds
}

// same reports whether two pods on one node count the same for whether the pod fits and which budgets are hurt.
func (cy *cycle) same(a, b *Pod) bool {
	if !slices.Equal(a.held, b.held) || len(a.ports) > 0 || len(b.ports) > 0 || cy.mounts != nil && (cy.mounts.uses(a) || cy.mounts.uses(b)) {
		return false
	}
	for _, budget := range cy.c.budgets {
		if budget.covers(a) != budget.covers(b) {
			return false
		}
	}
	if cy.affinities == nil && cy.spreads == nil {
		return true
	}
	return a.shape == b.shape || a.namespace == b.namespace && equalLabels(a.labels, b.labels) && len(a.antiAffinity) == 0 && len(b.antiAffinity) == 0
}

func equalLabels(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for key, value := range a {
		if other, has := b[key]; !has || other != value {
			return false
		}
	}
	return true
}

// interchange adds to every victim the pods that may be taken in its place, and is the outcome's signature: how many of
// each kind are evicted.
func (cy *cycle) interchange(n *node, lower []int, alike map[int]int, option *Option) string {
	evicted := map[*Pod]bool{}
	for _, victim := range option.Victims {
		evicted[victim.Pod] = true
	}
	kindOf := map[*Pod]int{}
	spared := map[int][]*Pod{}
	for _, i := range lower {
		pod := n.pods[i].pod
		kindOf[pod] = alike[i]
		if !evicted[pod] {
			spared[alike[i]] = append(spared[alike[i]], pod)
		}
	}
	var kinds []int
	for i := range option.Victims {
		kind := kindOf[option.Victims[i].Pod]
		option.Victims[i].Or = spared[kind]
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	return fmt.Sprint(kinds)
}

// orders visits the different orders of some pods that importance leaves open; those that are alike keep theirs. false:
// there are more than limit.
func orders(n *node, lower []int, alike map[int]int, limit int, visit func(order []int)) (complete bool) {
	order := slices.Clone(lower)
	left := limit
	var permute func(from int) bool
	permute = func(from int) bool {
		if from == len(order) {
			if left == 0 {
				return false
			}
			left--
			visit(order)
			return true
		}
		end := from + 1
		for end < len(order) && importance(n.pods[order[from]].pod, n.pods[order[end]].pod) == 0 {
			end++
		}
		tried := map[int]bool{}
		for i := from; i < end; i++ {
			if tried[alike[order[i]]] {
				continue
			}
			tried[alike[order[i]]] = true
			rotate(order[from:i+1], 1)
			done := permute(from + 1)
			rotate(order[from:i+1], -1)
			if !done {
				return false
			}
		}
		return true
	}
	return permute(0)
}

// rotate brings the last of some numbers to the front (1), or the first to the end (-1).
func rotate(numbers []int, by int) {
	last := len(numbers) - 1
	if by > 0 {
		moved := numbers[last]
		copy(numbers[1:], numbers[:last])
		numbers[0] = moved
		return
	}
	moved := numbers[0]
	copy(numbers, numbers[1:])
	numbers[last] = moved
}

// String is a sentence part: "node-2, evicting default/low-1 or default/low-0 (equal)".
func (o Option) String() string {
	if len(o.Victims) == 0 {
		return o.Node
	}
	var texts []string
	for _, victim := range o.Victims {
		texts = append(texts, victim.String())
	}
	return o.Node + ", evicting " + list(texts)
}

// String is the victim, and those that may be taken in its place.
func (v Victim) String() string {
	if len(v.Or) == 0 {
		return v.Pod.String()
	}
	names := []string{v.Pod.String()}
	for _, other := range v.Or {
		names = append(names, other.String())
	}
	slices.SortFunc(names[1:], cmp.Compare)
	return strings.Join(names, " or ") + " (equal)"
}
