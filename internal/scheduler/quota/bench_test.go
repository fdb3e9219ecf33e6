package quota

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// cluster describes a large engine: queues in cohorts, and workloads of which some fit.
type cluster struct {
	queues, perCohort, workloads int
	config                       Config
	// nodes is how many nodes of 8 CPUs and 8 GPUs there are, in racks of 20 and blocks of 10 racks, if the flavors have a
	// topology: then each workload requires a rack. 0: they have none.
	nodes int
}

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// build fills an engine: every queue has 8 CPUs and 16 GPUs in two flavors, and workloads of 1 to 4 CPUs that come in
// turns.
func (c cluster) build(tb testing.TB) *Engine {
	tb.Helper()
	e := New(c.config)
	for _, flavor := range []string{"spot", "on-demand"} {
		spec := kueue.ResourceFlavorSpec{}
		if c.nodes > 0 {
			spec.NodeLabels, spec.TopologyName = map[string]string{"flavor": flavor}, new(kueue.TopologyReference("default"))
		}
		e.SetFlavor(flavor, spec)
	}
	c.addNodes(e)
	quota := func(name string, cpu, gpu string) kueue.FlavorQuotas {
		return kueue.FlavorQuotas{Name: kueue.ResourceFlavorReference(name), Resources: []kueue.ResourceQuota{
			{Name: "cpu", NominalQuota: resource.MustParse(cpu)}, {Name: "nvidia.com/gpu", NominalQuota: resource.MustParse(gpu)},
		}}
	}
	for i := range c.queues {
		spec := kueue.ClusterQueueSpec{
			NamespaceSelector: &metav1.LabelSelector{},
			ResourceGroups: []kueue.ResourceGroup{{
				CoveredResources: []corev1.ResourceName{"cpu", "nvidia.com/gpu"},
				Flavors:          []kueue.FlavorQuotas{quota("spot", "5", "10"), quota("on-demand", "3", "6")},
			}},
			CohortName: kueue.CohortReference(fmt.Sprintf("team-%d", i/c.perCohort)),
			Preemption: &kueue.ClusterQueuePreemption{
				WithinClusterQueue: kueue.PreemptionPolicyLowerPriority, ReclaimWithinCohort: kueue.PreemptionPolicyAny,
			},
		}
		if i%2 == 0 {
			spec.QueueingStrategy = kueue.StrictFIFO
		}
		name := fmt.Sprintf("q%04d", i)
		if err := e.SetClusterQueue(name, spec); err != nil {
			tb.Fatal(err)
		}
		e.SetLocalQueue(types.NamespacedName{Namespace: "ns", Name: name}, kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(name)})
	}
	for i := range c.workloads {
		e.SetWorkload(c.workload(i))
	}
	return e
}

func (c cluster) addNodes(e *Engine) {
	if c.nodes > 0 {
		e.SetTopology("default", []string{"block", "rack", corev1.LabelHostname})
	}
	for i := range c.nodes {
		name := fmt.Sprintf("node-%04d", i)
		e.SetNode(Node{
			Name: name,
			Labels: map[string]string{
				"flavor": []string{"spot", "on-demand"}[i%2], "block": fmt.Sprintf("b%d", i/200), "rack": fmt.Sprintf("r%d", i/20), corev1.LabelHostname: name,
			},
			Allocatable: corev1.ResourceList{"cpu": resource.MustParse("8"), "nvidia.com/gpu": resource.MustParse("8"), "pods": resource.MustParse("110")},
		})
	}
}

func (c cluster) workload(i int) Workload {
	w := c.plainWorkload(i)
	if c.nodes > 0 {
		rack := "rack"
		w.PodSets[0].Topology = &kueue.PodSetTopologyRequest{Required: &rack}
	}
	return w
}

func (c cluster) plainWorkload(i int) Workload {
	return Workload{
		NamespacedName: types.NamespacedName{Namespace: "ns", Name: fmt.Sprintf("w%05d", i)},
		UID:            fmt.Sprintf("%08x", uint32(i)*2654435761),
		Created:        start.Add(time.Duration(i) * time.Second),
		Priority:       int32(i / c.queues % 3 * 10),
		Queue:          fmt.Sprintf("q%04d", i*7%c.queues),
		PodSets: []PodSet{{Name: "main", Count: int32(1 + i%3), Requests: corev1.ResourceList{
			"cpu": resource.MustParse(fmt.Sprint(1 + i%2)), "nvidia.com/gpu": resource.MustParse("1"),
		}}},
	}
}

// fill lets the engine work until it is at rest, or for some hundred cycles: with fair sharing, workloads can evict
// each other without end. What is evicted gives its quota back at once.
func fill(e *Engine, now time.Time) {
	for range 300 {
		r := e.Cycle(now)
		for _, d := range r.Decisions {
			if d.Kind == Evict {
				e.Release(d.Workload)
			}
			for _, t := range d.Targets {
				e.Release(t.Workload)
			}
		}
		if r.Settled {
			at, more := e.RequeueAt()
			if !more {
				return
			}
			e.Requeue(at)
		}
	}
}

var large = map[string]cluster{
	"1000 queues in 100 cohorts":                {queues: 1000, perCohort: 10, workloads: 10_000},
	"1000 queues in one cohort":                 {queues: 1000, perCohort: 1000, workloads: 10_000},
	"1000 queues in 100 cohorts, fair sharing":  {queues: 1000, perCohort: 10, workloads: 10_000, config: Config{FairSharing: &FairSharing{}}},
	"1000 queues, three levels over 5000 nodes": {queues: 1000, perCohort: 10, workloads: 10_000, nodes: 5000},
	"100 queues, three levels over 500 nodes":   {queues: 100, perCohort: 10, workloads: 1000, nodes: 500},
}

// BenchmarkCycle tries the head of every queue, after a change that brought all workloads back.
func BenchmarkCycle(b *testing.B) {
	for name, c := range large {
		b.Run(name, func(b *testing.B) {
			e := c.build(b)
			fill(e, start)
			for b.Loop() {
				b.StopTimer()
				trial := e.Clone()
				for _, q := range trial.ordered {
					trial.retryLater(q)
				}
				trial.Requeue(start)
				trial.Requeue(start.Add(time.Hour))
				b.StartTimer()
				trial.Cycle(start)
			}
		})
	}
}

// BenchmarkWhatIf asks about one more workload.
func BenchmarkWhatIf(b *testing.B) {
	for name, c := range large {
		b.Run(name, func(b *testing.B) {
			e := c.build(b)
			fill(e, start)
			w := c.workload(c.workloads + 1)
			w.Priority = 1000
			for b.Loop() {
				e.WhatIf(w, start)
			}
		})
	}
}

// BenchmarkSimulation is a busy day: 50,000 workloads come in turns to 1,000 queues, and those that hold quota end.
func BenchmarkSimulation(b *testing.B) {
	c := cluster{queues: 1000, perCohort: 10}
	for b.Loop() {
		e := c.build(b)
		now := start
		var running []types.NamespacedName
		for next := 0; next < 50_000; now = now.Add(time.Minute) {
			for range 1000 {
				e.SetWorkload(c.workload(next))
				next++
			}
			for settled := false; !settled; {
				r := e.Cycle(now)
				for _, d := range r.Decisions {
					if d.Kind == Admit {
						running = append(running, d.Workload)
					}
					for _, t := range d.Targets {
						e.Release(t.Workload)
					}
				}
				settled = r.Settled
			}
			done := len(running) / 2
			for _, name := range running[:done] {
				e.Finish(name)
			}
			running = running[done:]
		}
	}
}
