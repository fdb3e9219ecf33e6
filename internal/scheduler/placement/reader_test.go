package placement

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// world is a cluster that pods of few shapes come to and are evicted from, all by one seed. It chooses among equals at
// random.
type world struct {
	c       *Cluster
	chance  *rand.Rand
	shapes  []*Pod
	waiting []*Pod
}

func newWorld(seed uint64, nodes int) *world {
	w := &world{chance: rand.New(rand.NewPCG(seed, 1))}
	var snapshot Snapshot
	for i := range nodes {
		size := fmt.Sprint(2 + w.chance.IntN(3))
		snapshot.Nodes = append(snapshot.Nodes, machine(fmt.Sprint("node-", i), amounts("cpu", size, "memory", "8Gi")))
	}
	w.c = New(snapshot)
	w.c.TieBreak = rand.New(rand.NewPCG(seed, 2)).IntN
	for i, cpu := range []string{"500m", "1", "2", "3"} {
		for _, priority := range []int32{0, 10, 20} {
			w.shapes = append(w.shapes, w.c.Pod(prioritised(fmt.Sprint("shape-", i), priority, amounts("cpu", cpu, "memory", "1Gi"))))
		}
	}
	return w
}

// step schedules the next pod and carries out the decision, of which it returns a description.
func (w *world) step(i int, ask func(*Cluster, *Pod)) string {
	pod := *w.shapes[w.chance.IntN(len(w.shapes))]
	pod.Name = fmt.Sprint("pod-", i)
	pod.Started = began.Add(time.Duration(w.chance.IntN(3)) * time.Second)
	next := &pod
	if len(w.waiting) > 0 && w.chance.IntN(3) == 0 {
		next, w.waiting = w.waiting[0], w.waiting[1:]
	}
	ask(w.c, next)
	d := w.c.Schedule(next)
	switch d.Kind {
	case Bound:
		w.c.AddPod(next, d.Node)
	case Preempts:
		w.c.Preempt(next, d.Node, d.Victims)
		ask(w.c, next)
		for _, victim := range d.Victims {
			w.c.RemovePod(victim, d.Node)
		}
		w.waiting = append(w.waiting, next)
	}
	return fmt.Sprintf("%s %s on %q, one of %d, evicting %v", next, d.Kind, d.Node, d.Equal, d.Victims)
}

func TestQuestionsChangeNoLaterDecision(t *testing.T) {
	questions := []func(*Cluster, *Pod){
		func(c *Cluster, pod *Pod) { c.Explain(pod) },
		func(c *Cluster, pod *Pod) { c.Alternatives(pod) },
		func(c *Cluster, pod *Pod) { c.Approximate(pod) },
	}
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		nodes := rapid.SampledFrom([]int{1, 3, 20, 130}).Draw(t, "nodes")
		plain, queried := newWorld(seed, nodes), newWorld(seed, nodes)
		draws := rapid.SliceOfN(rapid.IntRange(-3, len(questions)-1), 1, 20).Draw(t, "questions")
		at := 0
		ask := func(c *Cluster, pod *Pod) {
			if q := draws[at%len(draws)]; q >= 0 {
				questions[q](c, pod)
			}
			at++
		}
		for i := range 4*nodes + 20 {
			want := plain.step(i, func(*Cluster, *Pod) {})
			if got := queried.step(i, ask); got != want {
				t.Fatalf("decision %d: %s; without questions: %s", i, got, want)
			}
		}
	})
}
