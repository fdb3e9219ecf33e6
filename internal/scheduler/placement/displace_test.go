package placement

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

// What Displaces and Crowded promise is compared with decisions in any order, with any choice between equals, while pods
// leave, and are created again, at any time.
func TestWhatIsProvedOfAGangHoldsInEveryOrder(t *testing.T) {
	proved := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		chance := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)) //nolint:gosec // drawn by a seed
		for range 20 {                                                     // few are proved
			c, planned := anyContest(chance)
			var pending []Group
			for _, pod := range c.Pending() {
				pending = append(pending, Group{pod, 1})
			}
			displaced, counted := c.Displaced(planned, pending, func(int32) bool { return false })
			displaces, crowded := c.Displaces(planned, pending), c.Crowded(planned, pending, func(*Pod) bool { return false })
			if displaces && crowded {
				t.Fatal("they are said to start, and not to")
			}
			if displaces || crowded {
				proved[fmt.Sprintf("%d nodes, start %t", min(len(c.nodes), 7), displaces)]++
			}
			if below := c.below(1000); counted && len(below) > 0 && displaced.Highest < below[len(below)-1] {
				proved["none above"]++
			}
			for range 10 {
				f := newFuture(c, planned, chance)
				if !displaces && !crowded && !counted {
					break
				}
				switch f.run(); {
				case displaces && f.waiting() > 0:
					t.Fatalf("%d of them wait:\n%v", f.waiting(), f.log)
				case crowded && f.waiting() == 0:
					t.Fatalf("all of them start:\n%v", f.log)
				case counted:
					if why := displaced.contradicted(f); why != "" {
						t.Fatalf("%s: %+v\n%v", why, displaced, f.log)
					}
				}
			}
		}
	})
	for _, what := range []string{"2 nodes, start true", "2 nodes, start false", "6 nodes, start true", "7 nodes, start true", "7 nodes, start false", "none above"} {
		if proved[what] == 0 {
			t.Errorf("nothing is ever proved of %s: %v", what, proved)
		}
	}
}

// contradicted is what happened otherwise than it was promised.
func (d Displacement) contradicted(f *future) string {
	present := 0
	for _, v := range f.evicted {
		isCandidate := slices.Contains(d.Candidates[v.node], v.pod)
		if isCandidate {
			present++
		}
		switch {
		case v.pod.Priority > d.Highest:
			return v.pod.String() + " is evicted"
		case !isCandidate && !strings.HasSuffix(v.pod.Name, "-again"):
			return v.pod.String() + " is no candidate"
		}
	}
	if present < d.Fewest || present > d.Most {
		return fmt.Sprint(present, " are evicted")
	}
	return ""
}

// Each of these keeps a promise from being given that holds without it.
func TestNothingIsProvedOfAGangWhereOthersMayComeInBetween(t *testing.T) {
	none := func(*corev1.Pod) {}
	unplaced := func(b *builder) { delete(b.Nodes[0].Labels, "zone") }
	for name, c := range map[string]struct {
		runs, waits func(*corev1.Pod)
		change      func(*builder)
		priorities  [2]int32 // of the pods on both nodes
		crowded     bool
	}{
		"what is created again evicts the other pod":  {runs: going, priorities: [2]int32{100, 0}},
		"what is created again is more important":     {runs: going, priorities: [2]int32{2000, 1000}, crowded: true},
		"what waits keeps them off":                   {waits: repelledBy("new", "zone"), priorities: [2]int32{500, 500}},
		"what runs keeps them off when created again": {runs: repelledBy("new", "zone"), change: unplaced, priorities: [2]int32{100, 100}},
	} {
		for _, with := range []bool{false, true} {
			b := nodes("a", "b")
			runs, waits := none, none
			if with && c.runs != nil {
				runs = c.runs
			}
			if with && c.waits != nil {
				waits = c.waits
			}
			if c.change != nil {
				c.change(b)
			}
			b.at("a").runs("one", c.priorities[0], "4", runs).at("b").runs("other", c.priorities[1], "4")
			waiting := prioritised("waiting", 100, amounts("cpu", "2", "memory", "1Gi"))
			waits(waiting)
			planned := prioritised("new", 1000, amounts("cpu", "4", "memory", "1Gi"))
			labelledAs("new")(planned)
			cluster := New(b.Snapshot)
			gang, pending, nobody := []Group{{cluster.Pod(planned), 2}}, []Group{{cluster.Pod(waiting), 1}}, func(*Pod) bool { return false }
			proved := cluster.Displaces(gang, pending)
			if c.crowded {
				proved = cluster.Crowded(gang, pending, nobody)
			} else if c.waits == nil {
				proved = cluster.Displaces(gang, nil)
			}
			if proved == with {
				t.Errorf("%s: %t, proved: %t", name, with, proved)
			}
		}
	}
}

// kube-scheduler compares a hundred nodes where evictions help, which it draws: those with unimportant pods may be rare among
// them, wherever they are.
func TestWhatIsImportantIsSparedWhereAHundredNodesThatAreDrawnHaveOthers(t *testing.T) {
	const count = 400
	above, nothingAbove := Displacement{Highest: 500, Most: count}, Displacement{Most: 2}
	for name, c := range map[string]struct {
		important func(i int) bool
		want      Displacement
	}{
		"there are few others, in every hundred":         {func(i int) bool { return i%20 > 0 }, above},
		"there are few others, all in the first hundred": {func(i int) bool { return i > 20 }, above},
		"too few are important to be all that is drawn":  {func(i int) bool { return i < 98 }, nothingAbove},
		"half are important, one after the other":        {func(i int) bool { return i < 200 }, nothingAbove},
		"half are important":                             {func(i int) bool { return i%2 > 0 }, nothingAbove},
	} {
		b := &builder{}
		for i := range count {
			name, priority := fmt.Sprint("node-", i), int32(0)
			if c.important(i) {
				priority = 500
			}
			b.Nodes = append(b.Nodes, machine(name, amounts("cpu", "4", "memory", "64Gi", "pods", "110")))
			b.at(name).runs(fmt.Sprint("pod-", i), priority, "4")
		}
		cluster := New(b.Snapshot)
		planned := []Group{{cluster.Pod(prioritised("new", 1000, amounts("cpu", "4", "memory", "1Gi"))), 2}}
		proof, proved := cluster.Displaced(planned, nil, func(int32) bool { return false })
		if want := c.want; !proved || proof.Highest != want.Highest || proof.Fewest != 2 || proof.Most != want.Most {
			t.Errorf("%s: %t, nothing above %d, %d to %d pods", name, proved, proof.Highest, proof.Fewest, proof.Most)
		}
	}
}

func TestTheProbabilityThatTooFewAreDrawn(t *testing.T) {
	for _, c := range []struct {
		good, bad, drawn, least int
		want                    float64
	}{
		{3, 2, 2, 1, 0.1}, {3, 2, 2, 2, 0.7}, {3, 2, 2, 3, 1}, {3, 2, 4, 2, 0}, {0, 5, 2, 1, 1}, {5, 0, 2, 2, 0}, {1, 4, 5, 1, 0}, {3, 2, 2, 0, 0},
	} {
		if got := fewerOf(c.good, c.bad, c.drawn, c.least); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// What is created again in the place of a victim may evict others, also where no planned pod fits.
func TestWhatIsCreatedAgainMayEvictOthersElsewhere(t *testing.T) {
	for name, c := range map[string]struct {
		change     func(*corev1.Pod)
		candidates int
		proved     bool
	}{
		"more important than others": {func(*corev1.Pod) {}, 3, true},
		"it is stopping already":     {going, 0, false},
		"as important as others":     {func(p *corev1.Pod) { p.Spec.Priority = new(int32) }, 2, true},
	} {
		b := nodes("a")
		b.Nodes = append(b.Nodes, machine("small", amounts("cpu", "2", "memory", "64Gi", "pods", "110")))
		b.at("a").runs("one", 500, "2", c.change).runs("two", 500, "2", c.change).at("small").runs("other", 0, "2")
		cluster := New(b.Snapshot)
		planned := []Group{{cluster.Pod(prioritised("new", 1000, amounts("cpu", "4", "memory", "1Gi"))), 1}}
		proof, proved := cluster.Displaced(planned, nil, func(int32) bool { return false })
		if count := len(proof.Candidates["a"]) + len(proof.Candidates["small"]); proved != c.proved || count != c.candidates {
			t.Errorf("%s: %t, %d candidates", name, proved, count)
		}
	}
}

// anyContest draws a cluster that is nearly full, and equal and other planned pods.
func anyContest(chance *rand.Rand) (*Cluster, []Group) {
	b, capacity := &builder{}, 4+4*chance.IntN(2)
	one := func(of ...int32) int32 { return of[chance.IntN(len(of))] }
	special := []func(*corev1.Pod){going, withPort(80), repelledBy("new", corev1.LabelHostname), repelledBy("new", "zone"), labelledAs("new"), never}
	rare, stopping := 6+chance.IntN(60), chance.IntN(4) == 0
	change := func(p *corev1.Pod) {
		labelledAs(fmt.Sprint(chance.IntN(4)))(p)
		if chance.IntN(rare) == 0 {
			special[chance.IntN(len(special))](p)
		}
		if stopping && chance.IntN(4) == 0 {
			going(p)
		}
	}
	priorities := [][]int32{{0}, {0, 0, 100}, {0, 500, 2000}, {0, 1000}, {-5, 0, 100}}[chance.IntN(5)]
	count := 1 + chance.IntN(8)
	if chance.IntN(8) == 0 {
		count = 101 + chance.IntN(40) // more than a pod that preempts looks at
	}
	for i := range count {
		name := fmt.Sprint("node-", i)
		n := machine(name, amounts("cpu", fmt.Sprint(capacity), "memory", "64Gi", "pods", fmt.Sprint(one(3, 8, 110))))
		n.Labels["zone"] = fmt.Sprint(i % 2)
		if chance.IntN(20) == 0 {
			n.Spec.Taints = []corev1.Taint{{Key: "other", Effect: corev1.TaintEffectNoSchedule}}
		}
		b.Nodes = append(b.Nodes, n)
		b.at(name)
		for free, pods := capacity, n.Status.Allocatable.Pods().Value(); free > 0 && pods > 0 && chance.IntN(12) > 0; pods-- {
			size := min(free, 1<<chance.IntN(3))
			free -= size
			b.runs(fmt.Sprint("pod-", len(b.Pods)), one(priorities...), fmt.Sprint(size), started(chance.IntN(9)), change)
		}
	}
	for i := range chance.IntN(4) {
		p := prioritised(fmt.Sprint("pending-", i), one(-5, 0, 100, 1000, 2000), amounts("cpu", fmt.Sprint(1+chance.IntN(2*capacity)), "memory", "1Gi"))
		change(p)
		p.DeletionTimestamp = nil
		b.Pods = append(b.Pods, p)
	}
	if chance.IntN(3) == 0 {
		b.budget(one(0, 1, 2), map[string]string{"app": "0"})
	}
	c := New(b.Snapshot)
	var planned []Group
	add := func(name string, cpu int32, count int) {
		p := prioritised(name, 1000, amounts("cpu", fmt.Sprint(cpu), "memory", "1Gi"))
		labelledAs("new")(p)
		if chance.IntN(rare) == 0 {
			special[1+chance.IntN(len(special)-1)](p)
		}
		planned = append(planned, Group{c.Pod(p), count})
	}
	size := one(1, 2, 4)
	add("new", size, 1+chance.IntN(capacity/int(size)*min(count, 8)+1))
	if chance.IntN(3) == 0 {
		add("beside", one(0, 1, 3), 1+chance.IntN(2))
	}
	return c, planned
}

// future is one way in which things go.
type future struct {
	c       *Cluster
	chance  *rand.Rand
	planned map[*Pod]bool
	tried   []*Pod // without a node
	evicted []located
	views   []Budgets
	again   int // in how many of ten cases a pod that leaves is created again
	log     []string
}

func newFuture(c *Cluster, planned []Group, chance *rand.Rand) *future {
	f := &future{c: c.Clone(), chance: chance, planned: map[*Pod]bool{}, tried: slices.Clone(c.Pending()), again: chance.IntN(11)}
	f.c.TieBreak = chance.IntN
	for _, g := range planned {
		for copies := range g.Count {
			same := *g.Pod
			same.Name = fmt.Sprint(g.Pod.Name, "-", copies)
			f.tried, f.planned[&same] = append(f.tried, &same), true
		}
	}
	f.views = []Budgets{f.c.Budgets()}
	return f
}

func (f *future) waiting() (count int) {
	for _, pod := range f.tried {
		if f.planned[pod] {
			count++
		}
	}
	return count
}

// run lets things happen in any order, and then goes on until nothing changes.
func (f *future) run() {
	for steps := 20 + f.chance.IntN(100); steps > 0; steps-- {
		if leaving := f.leaving(); len(leaving) > 0 && f.chance.IntN(3) == 0 {
			f.leave(leaving[f.chance.IntN(len(leaving))])
		} else if len(f.tried) > 0 {
			f.try(f.tried[f.chance.IntN(len(f.tried))])
		}
	}
	for changed := true; changed; {
		changed = false
		for _, l := range f.leaving() {
			f.leave(l)
			changed = true
		}
		for _, i := range f.chance.Perm(len(f.tried)) {
			if i < len(f.tried) {
				changed = f.try(f.tried[i]) || changed
			}
		}
	}
}

// located is a pod on its node.
type located struct {
	pod  *Pod
	node string
}

func (f *future) leaving() (leaving []located) {
	for _, n := range f.c.nodes {
		for _, o := range n.pods {
			if o.terminating {
				leaving = append(leaving, located{o.pod, n.name})
			}
		}
	}
	return leaving
}

func (f *future) leave(l located) {
	f.c.RemovePod(l.pod, l.node)
	f.log = append(f.log, fmt.Sprintf("%s leaves %s", l.pod, l.node))
	if f.chance.IntN(10) < f.again {
		again := *l.pod
		again.Name, again.Started = l.pod.Name+"-again", time.Time{}
		f.tried = append(f.tried, &again)
	}
}

// try decides about a pod, and reports whether that changes anything.
func (f *future) try(pod *Pod) bool {
	decides := f.c
	if len(f.c.budgets) > 0 { // the scheduler may not have seen the last evictions
		decides = f.c.At(f.views[f.chance.IntN(len(f.views))])
	}
	f.c.next = f.chance.IntN(len(f.c.nodes))
	decides.next = f.c.next
	d := decides.Schedule(pod)
	f.log = append(f.log, fmt.Sprintf("%s (%d): %s %s %v", pod, pod.Priority, d.Kind, d.Node, d.Victims))
	switch d.Kind {
	case Bound:
		f.c.AddPod(pod, d.Node)
		f.tried = slices.DeleteFunc(f.tried, func(other *Pod) bool { return other == pod })
		return true
	case Preempts:
		n := f.c.nodes[f.c.position[d.Node]]
		for _, victim := range d.Victims {
			if !n.pods[n.find(victim)].terminating {
				f.evicted = append(f.evicted, located{victim, n.name})
			}
		}
		f.c.Preempt(pod, d.Node, d.Victims)
		f.views = append(f.views, f.c.Budgets())
		return true
	default:
		return false
	}
}
