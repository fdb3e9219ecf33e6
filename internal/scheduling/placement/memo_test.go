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

func TestWhatIsRememberedIsWhatWouldBeFoundOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		chance := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		count := rapid.SampledFrom([]int{1, 3, 64, 130}).Draw(t, "nodes")
		var snapshot Snapshot
		for i := range count {
			snapshot.Nodes = append(snapshot.Nodes, machine(fmt.Sprint("node-", i), amounts("cpu", fmt.Sprint(1+chance.IntN(3)), "memory", "4Gi")))
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
			asks := &pod
			if len(waiting) > 0 && chance.IntN(2) == 0 {
				asks, waiting = waiting[0], waiting[1:]
			}
			want, next := findOut(c, asks)
			got := c.Schedule(asks)
			if got.Kind != want.Kind || got.Node != want.Node || got.Equal != want.Equal || !slices.Equal(got.Victims, want.Victims) || c.next != next {
				t.Fatalf("step %d: %s: %+v, next %d; want %+v, next %d", step, asks, got, c.next, want, next)
			}
			switch got.Kind {
			case Bound:
				c.AddPod(asks, got.Node)
				running = append(running, at{asks, got.Node})
			case Preempts:
				c.Preempt(asks, got.Node, got.Victims)
				waiting = append(waiting, asks)
			}
		}
	})
}

func TestAnIndexKnowsTheBestOfAWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scores := rapid.SliceOfN(rapid.Int16Range(-1, 3), 1, 40).Draw(t, "scores")
		x := newIndex(len(scores))
		for at, score := range scores {
			x.set(at, rapid.Int16Range(-1, 3).Draw(t, "before"))
			x.set(at, score)
		}
		from := rapid.IntRange(0, len(scores)).Draw(t, "from")
		to := rapid.IntRange(from, len(scores)).Draw(t, "to")
		best := int16(-1)
		for _, score := range scores[from:to] {
			best = max(best, score)
		}
		var tied, fit []int
		for at, score := range scores {
			if score >= 0 {
				fit = append(fit, at)
			}
			if at >= from && at < to && score == best && score >= 0 {
				tied = append(tied, at)
			}
		}
		got, ties := x.top(from, to)
		if got != best || int(ties) != len(tied) {
			t.Fatalf("the best is %d, %d times; want %d, %d times", got, ties, best, len(tied))
		}
		for n, at := range tied {
			if found := x.find(from, to, best, int32(n)); found != at {
				t.Fatalf("the best number %d is at %d, not at %d", n, found, at)
			}
		}
		for n, at := range fit {
			if x.nth(n) != at || x.before(at) != n {
				t.Fatalf("number %d is at %d with %d before it; want %d", n, x.nth(n), x.before(at), at)
			}
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
		if got := slices.Collect(set.from(nth)); !slices.Equal(got, want) || set.count != len(in) {
			t.Fatalf("%v from number %d: %v", in, nth, got)
		}
	})
}
