package placement

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// findOut decides about a pod as Schedule does, from nothing and with a look at every node.
func findOut(c *Cluster, pod *Pod) (decision Decision, next int) {
	cy := c.cycle(pod)
	if at, reserved := c.reserved(pod); reserved && cy.at(at) == feasible {
		return Decision{Kind: Bound, Node: c.nodes[at].name, Equal: 1}, c.next
	}
	var fits, helpful []int
	tried := 0
	for tried < len(c.nodes) && len(fits) < enough(len(c.nodes)) {
		at := (c.next + tried) % len(c.nodes)
		tried++
		switch v := cy.at(at); {
		case v == feasible:
			fits = append(fits, at)
		case v.resolvable():
			helpful = append(helpful, at)
		}
	}
	next = (c.next + tried) % len(c.nodes)
	if len(fits) > 0 {
		if len(fits) > 1 {
			fits = highest(fits, c.scores(pod, fits))
		}
		return Decision{Kind: Bound, Node: c.nodes[fits[0]].name, Equal: len(fits)}, next
	}
	decision.Kind = Unschedulable
	if cy.ineligible() != "" {
		return decision, next
	}
	slices.Sort(helpful)
	var best ranking
	found := 0
	for _, at := range helpful {
		rank, helps, _ := cy.victims(c.nodes[at])
		if !helps {
			continue
		}
		if found++; found == 1 || rank.compare(best) > 0 {
			best = rank
			decision = Decision{Kind: Preempts, Node: c.nodes[at].name, Equal: 1, Violations: rank.violations, Victims: slices.Clone(c.work.victims)}
		} else if rank == best {
			decision.Equal++
		}
		if found >= candidates(len(helpful)) {
			break
		}
	}
	return decision, next
}

func TestCachedDecisionsEqualUncachedDecisions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		chance := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		count := rapid.SampledFrom([]int{1, 3, 64, 130}).Draw(t, "nodes")
		var snapshot Snapshot
		for i := range count {
			node := machine(fmt.Sprint("node-", i), amounts("cpu", fmt.Sprint(1+chance.IntN(3)), "memory", "4Gi"))
			node.Labels["zone"] = fmt.Sprint("zone-", i%2)
			snapshot.Nodes = append(snapshot.Nodes, node)
		}
		c := New(snapshot)
		var templates []*Pod
		for i, cpu := range []string{"300m", "1", "2500m"} {
			for _, priority := range []int32{0, 10} {
				templates = append(templates, c.Pod(prioritised(fmt.Sprint("shape-", i), priority, amounts("cpu", cpu, "memory", "1Gi"))))
			}
		}
		templates = append(templates, c.Pod(prioritised("port", 10, amounts("cpu", "100m"))))
		withPort(80)(templates[6].object)
		templates[6] = c.Pod(templates[6].object)
		for i := range rapid.IntRange(0, 4).Draw(t, "others") {
			templates = append(templates, c.Pod(anyPod(t, fmt.Sprint("any-", i))))
		}
		type at struct {
			pod  *Pod
			node string
		}
		var running []at
		var waiting []*Pod
		for step := range count + 30 {
			switch what := chance.IntN(20); {
			case what < 4 && len(running) > 0:
				i := chance.IntN(len(running))
				c.RemovePod(running[i].pod, running[i].node)
				running = slices.Delete(running, i, i+1)
				continue
			case what == 5:
				c = c.Clone()
			case what == 6 && step%7 == 0:
				name := c.nodes[chance.IntN(len(c.nodes))].name
				c.RemoveNode(name)
				running = slices.DeleteFunc(running, func(a at) bool { return a.node == name })
				c.AddNode(machine(name, amounts("cpu", "2", "memory", "4Gi")))
			}
			pod := *templates[chance.IntN(len(templates))]
			pod.Name = fmt.Sprint("pod-", step)
			pod.Started = began.Add(time.Duration(chance.IntN(4)) * time.Second)
			pending := &pod
			if len(waiting) > 0 && chance.IntN(2) == 0 {
				pending, waiting = waiting[0], waiting[1:]
			}
			want, next := findOut(c, pending)
			got := c.Schedule(pending)
			if got.Kind != want.Kind || got.Node != want.Node || got.Equal != want.Equal || !slices.Equal(got.Victims, want.Victims) || c.next != next {
				t.Fatalf("step %d: %s: %+v, next %d; want %+v, next %d", step, pending, got, c.next, want, next)
			}
			switch got.Kind {
			case Bound:
				c.AddPod(pending, got.Node)
				running = append(running, at{pending, got.Node})
			case Preempts:
				c.Preempt(pending, got.Node, got.Victims)
				waiting = append(waiting, pending)
			}
		}
	})
}

func TestAnIndexKnowsTheBestOfAWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scores := rapid.SliceOfN(rapid.Int16Range(-4, 3), 1, 40).Draw(t, "scores")
		x := newIndex[score](len(scores))
		const none = -4 // a score below zero is one like any other
		note := func(at int, value int16) {
			if value == none {
				x.drop(at)
			} else {
				x.set(at, score(value))
			}
		}
		for at, value := range scores {
			note(at, rapid.Int16Range(-4, 3).Draw(t, "before"))
			note(at, value)
		}
		from := rapid.IntRange(0, len(scores)-1).Draw(t, "from")
		limit := rapid.IntRange(1, len(scores)+1).Draw(t, "limit")
		best, looked := int16(none), 0
		var fit, tied []int
		for i := range scores {
			at := (from + i) % len(scores)
			if value := scores[at]; value != none {
				if len(fit) == limit {
					break
				}
				fit = append(fit, at)
				if value > best {
					best, tied = value, nil
				}
				if value == best {
					tied = append(tied, at)
				}
			}
			if looked++; len(fit) == limit {
				break
			}
		}
		w := x.window(from, limit)
		if got := w.end - w.from + w.rest; got != looked || w.from != from || w.rest > 0 && w.end != len(scores) {
			t.Fatalf("the window %+v has %d positions; want %d from %d", w, got, looked, from)
		}
		got, ties := x.top(w)
		if int(ties) != len(tied) || ties > 0 && got != score(best) {
			t.Fatalf("the best is %d, %d times; want %d, %d times", got, ties, best, len(tied))
		}
		for n, at := range tied {
			if found := x.find(w, got, int32(n)); found != at {
				t.Fatalf("the best number %d is at %d, not at %d", n, found, at)
			}
		}
		n := 0
		for at, value := range scores {
			if value == none {
				continue
			}
			if x.nth(n) != at || x.before(at) != n {
				t.Fatalf("number %d is at %d with %d before it; want %d", n, x.nth(n), x.before(at), at)
			}
			n++
		}
	})
}

// TestTheEvictionsOfAnIndexAreThoseOfALook preempts with pods of one shape in a cluster so large that the search visits
// only a part of it, and compares the result of the index with a search of every node, from the same offset.
func TestTheEvictionsOfAnIndexAreThoseOfALook(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		chance := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		count := rapid.SampledFrom([]int{5, 101, 230}).Draw(t, "nodes")
		starts := rapid.SampledFrom([]int{2, 1000}).Draw(t, "starts") // of few starts many are equal, of which chance decides
		b := &builder{}
		for i := range count {
			name := fmt.Sprint("node-", i)
			b.Nodes = append(b.Nodes, machine(name, amounts("cpu", "3", "memory", "16Gi")))
			b.at(name)
			for j := range 3 {
				priority := int32(chance.IntN(3))
				if chance.IntN(4) == 0 {
					priority = 50 // which the pods that come do not outrank
				}
				b.runs(fmt.Sprint(name, "-", j), priority, "1", started(chance.IntN(starts)))
			}
		}
		c := New(b.Snapshot)
		template := c.Pod(prioritised("high", 10, amounts("cpu", rapid.SampledFrom([]string{"1", "1500m"}).Draw(t, "cpu"), "memory", "1Gi")))
		c.cycle(template) // so that its shape has a memo from now on
		for step := range 25 {
			if step%9 == 8 {
				c = c.Clone()
			}
			pod := *template
			pod.Name = fmt.Sprint("high-", step)
			seed := chance.Uint64()
			c.TieBreak = rand.New(rand.NewPCG(seed, 0)).IntN
			got := c.Schedule(&pod)

			cy := c.cycle(&pod)
			if _, equal := cy.search(); equal > 0 {
				t.Fatalf("step %d: there is room", step)
			}
			c.TieBreak = rand.New(rand.NewPCG(seed, 0)).IntN
			limit, offset := candidates(cy.helpful.count), 0
			if limit < cy.helpful.count {
				offset = c.choose(cy.helpful.count)
			}
			var best ranking
			var tied []Decision
			found := 0
			for other := range cy.helpful.from(offset) {
				rank, helps, _ := cy.victims(c.nodes[other])
				if !helps {
					continue
				}
				if found == 0 || rank.compare(best) > 0 {
					best, tied = rank, nil
				}
				if rank == best {
					tied = append(tied, Decision{Node: c.nodes[other].name, Victims: slices.Clone(c.work.victims)})
				}
				if found++; found == limit {
					break
				}
			}
			if len(tied) == 0 {
				if got.Kind != Unschedulable {
					t.Fatalf("step %d: %+v though evictions help nowhere", step, got)
				}
				continue
			}
			equals := func(d Decision) bool { return d.Node == got.Node && slices.Equal(d.Victims, got.Victims) }
			if got.Kind != Preempts || got.Equal != len(tied) || !slices.ContainsFunc(tied, equals) {
				t.Fatalf("step %d: %+v is not among %+v", step, got, tied)
			}
			c.Preempt(&pod, got.Node, got.Victims)
			for _, victim := range got.Victims {
				c.RemovePod(victim, got.Node)
			}
			c.Denominate(&pod)
			c.AddPod(&pod, got.Node)
		}
	})
}

func TestASetOfPositionsIsVisitedFromAnywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.SliceOfNDistinct(rapid.IntRange(0, 199), 0, 100, rapid.ID).Draw(t, "in")
		set := newPositionSet(200)
		for _, at := range in {
			set.set(at, true)
			set.set(at, true)
		}
		slices.Sort(in)
		nth := rapid.IntRange(0, max(len(in)-1, 0)).Draw(t, "nth")
		want := append(slices.Clone(in[min(nth, len(in)):]), in[:min(nth, len(in))]...)
		if len(want) > 0 && set.nth(nth) != want[0] {
			t.Fatalf("number %d is %d; want %d", nth, set.nth(nth), want[0])
		}
		if got := slices.Collect(set.from(nth)); !slices.Equal(got, want) || set.count != len(in) {
			t.Fatalf("%v from number %d: %v", in, nth, got)
		}
	})
}
