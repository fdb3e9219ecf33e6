package placement

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNoNodeIsEverOverCommitted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := New(anySnapshot(t))
		var running []*Pod
		for i := range rapid.IntRange(1, 15).Draw(t, "steps") {
			if len(running) > 0 && rapid.IntRange(0, 3).Draw(t, "leaves") == 0 {
				leaves := rapid.SampledFrom(running).Draw(t, "who")
				running = slices.DeleteFunc(running, func(p *Pod) bool { return p == leaves })
				c.RemovePod(leaves, where(c, leaves))
				continue
			}
			pod := c.Pod(anyPod(t, fmt.Sprint("new-", i)))
			d := c.Schedule(pod)
			if d.Kind == Preempts {
				c.Preempt(pod, d.Node, d.Victims)
				for _, victim := range d.Victims {
					running = slices.DeleteFunc(running, func(p *Pod) bool { return p == victim })
					c.RemovePod(victim, d.Node)
				}
				reserved := d.Node
				if d = c.Schedule(pod); d.Kind != Bound || d.Node != reserved {
					t.Fatalf("the victims are gone, and %s is %s on %q, not bound to %s", pod, d.Kind, d.Node, reserved)
				}
			}
			if d.Kind == Bound {
				c.AddPod(pod, d.Node)
				running = append(running, pod)
			}
			for _, n := range c.nodes {
				for slot, requested := range n.requested {
					if requested > n.allocatable.at(slot) || requested < 0 {
						t.Fatalf("%s has given %d of %s and has %d", n.name, requested, c.slots.names[slot], n.allocatable.at(slot))
					}
				}
				if len(n.pods) > n.podsAllowed {
					t.Fatalf("%s has %d pods of %d", n.name, len(n.pods), n.podsAllowed)
				}
			}
		}
	})
}

func where(c *Cluster, pod *Pod) string {
	for _, n := range c.nodes {
		if n.find(pod) >= 0 {
			return n.name
		}
	}
	return ""
}

func TestVictimsAreLessImportantAndEachIsNeeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := New(anySnapshot(t))
		pod := c.Pod(anyPod(t, "new"))
		for _, option := range c.Alternatives(pod).Options {
			without := c.Clone()
			for _, victim := range option.Victims {
				if victim.Pod.Priority >= pod.Priority {
					t.Fatalf("%s (priority %d) is evicted for %s (priority %d)", victim.Pod, victim.Pod.Priority, pod, pod.Priority)
				}
				without.RemovePod(victim.Pod, option.Node)
			}
			at := without.position[option.Node]
			if v := without.cycle(pod).at(at); v != feasible {
				t.Fatalf("%s does not fit though %s are gone: %s", pod, option, words[v])
			}
			if len(pod.affinity) > 0 {
				continue // A victim may be what it wants to be near to.
			}
			for _, victim := range option.Victims {
				without.AddPod(victim.Pod, option.Node)
				if without.cycle(pod).at(at) == feasible {
					t.Fatalf("%s need not be evicted for %s: it fits beside it", victim.Pod, pod)
				}
				without.RemovePod(victim.Pod, option.Node)
			}
		}
	})
}

func TestAddingAPodAndRemovingItLeavesNothingBehind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		snapshot := anySnapshot(t)
		c := New(snapshot)
		before := describe(c)
		pod := c.Pod(anyPod(t, "guest"))
		node := rapid.SampledFrom(c.nodes).Draw(t, "node").name
		c.AddPod(pod, node)
		clone := c.Clone()
		c.RemovePod(pod, node)
		if after := describe(c); after != before {
			t.Fatalf("%s\nbecame\n%s", before, after)
		}
		if where(clone, pod) != node {
			t.Fatal("the clone lost what the original lost")
		}
		clone.Nominate(c.Pod(anyPod(t, "nominee")), node)
		clone.RemoveNode(node)
		if after := describe(c); after != before {
			t.Fatalf("a change of the clone made\n%s\ninto\n%s", before, after)
		}
		probe := anyPod(t, "probe")
		if got, want := options(c.Alternatives(c.Pod(probe))), options(New(snapshot).Alternatives(New(snapshot).Pod(probe))); got != want {
			t.Fatalf("it answers %s, and would have answered %s", got, want)
		}
	})
}

func describe(c *Cluster) string {
	var text strings.Builder
	for _, n := range c.nodes {
		fmt.Fprintln(&text, n.name, n.requested[:firstScalar], n.heldForScore, n.withPorts, n.withAffinity, n.withAntiAffinity, len(n.pods), len(n.nominated))
	}
	fmt.Fprintln(&text, c.withAffinity, c.withAntiAffinity, len(c.nominated))
	return text.String()
}

func options(p Prospect) string {
	texts := []string{string(p.Kind)}
	for _, o := range p.Options {
		text := o.Node
		for _, victim := range o.Victims {
			text += " " + victim.String()
		}
		texts = append(texts, text)
	}
	slices.Sort(texts[1:])
	return strings.Join(texts, "; ")
}

func TestWhateverIsChosenIsAmongTheAlternatives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := New(anySnapshot(t))
		pod := c.Pod(anyPod(t, "new"))
		p := c.Alternatives(pod)
		chance := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		c.TieBreak = chance.IntN
		for range 5 {
			d := c.Schedule(pod)
			if d.Kind != p.Kind || d.Kind != Unschedulable && !slices.ContainsFunc(p.Options, func(o Option) bool { return o.is(d) }) {
				t.Fatalf("%s on %s, evicting %v, is not among %s", d.Kind, d.Node, d.Victims, options(p))
			}
		}
		if e := c.Explain(pod); e.Decision.Kind != p.Kind || (e.Message == "") != (p.Kind == Bound) {
			t.Fatalf("explained as %s: %q, and is %s", e.Decision.Kind, e.Message, p.Kind)
		}
	})
}

// is reports whether an option is a decision, up to pods that are equal.
func (o Option) is(d Decision) bool {
	if o.Node != d.Node || len(o.Victims) != len(d.Victims) || o.Violations != d.Violations {
		return false
	}
	left := slices.Clone(d.Victims)
	for _, victim := range o.Victims {
		i := slices.IndexFunc(left, func(p *Pod) bool { return p == victim.Pod || slices.Contains(victim.Or, p) })
		if i < 0 {
			return false
		}
		left = slices.Delete(left, i, i+1)
	}
	return true
}

func TestTheOrderOfNodesAndPodsChoosesOnlyBetweenEquals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		snapshot := anySnapshot(t)
		pod := anyPod(t, "new")
		shuffled := snapshot
		shuffled.Nodes = rapid.Permutation(snapshot.Nodes).Draw(t, "nodes")
		shuffled.Pods = rapid.Permutation(snapshot.Pods).Draw(t, "pods")
		one, other := New(snapshot), New(shuffled)
		if want, got := sets(one.Alternatives(one.Pod(pod))), sets(other.Alternatives(other.Pod(pod))); got != want {
			t.Fatalf("%s, and in another order %s", want, got)
		}
	})
}

// sets are the options with every pod that may be taken written out, so that which of equal pods stands first does not
// show.
func sets(p Prospect) string {
	texts := []string{string(p.Kind)}
	for _, o := range p.Options {
		var names []string
		for _, victim := range o.Victims {
			group := []string{victim.Pod.String()}
			for _, or := range victim.Or {
				group = append(group, or.String())
			}
			names = append(names, strings.Join(group, "|"))
		}
		// Equivalent victims may replace one another: their group is all of them.
		all := strings.Split(strings.Join(names, "|"), "|")
		slices.Sort(all)
		texts = append(texts, fmt.Sprint(o.Node, len(o.Victims), slices.Compact(all)))
	}
	slices.Sort(texts[1:])
	return strings.Join(slices.Compact(texts), "; ")
}

func TestWhatNeverFitsIsNeverScheduled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		snapshot := anySnapshot(t)
		pod := anyPod(t, "new")
		c := New(snapshot)
		if why, never := Never(pod, snapshot.Nodes); never {
			if kind := c.Alternatives(c.Pod(pod)).Kind; kind != Unschedulable {
				t.Fatalf("it fits nowhere (%s), and is %s", why, kind)
			}
		}
	})
}
