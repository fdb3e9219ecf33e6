package quota

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// world draws engines and what happens to them.
type world struct {
	*Engine
	now   time.Time
	names []string
}

func drawQuantity(t *rapid.T, most int) resource.Quantity {
	return *resource.NewQuantity(int64(rapid.IntRange(0, most).Draw(t, "quantity")), resource.DecimalSI)
}

func drawLimit(t *rapid.T, most int) *resource.Quantity {
	if rapid.Bool().Draw(t, "unlimited") {
		return nil
	}
	q := drawQuantity(t, most)
	return &q
}

func drawQuotas(t *rapid.T, limits bool) []kueue.ResourceGroup {
	var flavors []kueue.FlavorQuotas
	for i := range rapid.IntRange(1, 2).Draw(t, "flavors") {
		q := kueue.ResourceQuota{Name: "cpu", NominalQuota: drawQuantity(t, 8)}
		if limits {
			q.BorrowingLimit = drawLimit(t, 6)
			q.LendingLimit = drawLimit(t, int(q.NominalQuota.Value()))
		}
		flavors = append(flavors, kueue.FlavorQuotas{Name: kueue.ResourceFlavorReference(fmt.Sprintf("f%d", i)), Resources: []kueue.ResourceQuota{q}})
	}
	return []kueue.ResourceGroup{{CoveredResources: []corev1.ResourceName{"cpu"}, Flavors: flavors}}
}

func drawWorld(t *rapid.T) *world {
	var config Config
	if rapid.Bool().Draw(t, "fair") {
		config.FairSharing = &FairSharing{}
	}
	w := &world{Engine: New(config), now: start}
	w.SetFlavor("f0", kueue.ResourceFlavorSpec{})
	w.SetFlavor("f1", kueue.ResourceFlavorSpec{})
	w.SetCohort("root", kueue.CohortSpec{ResourceGroups: drawQuotas(t, false)})
	w.SetCohort("left", kueue.CohortSpec{ParentName: "root", ResourceGroups: drawQuotas(t, true)})
	policies := []kueue.PreemptionPolicy{kueue.PreemptionPolicyNever, kueue.PreemptionPolicyLowerPriority, kueue.PreemptionPolicyAny}
	for i := range rapid.IntRange(1, 4).Draw(t, "queues") {
		spec := kueue.ClusterQueueSpec{
			NamespaceSelector: &metav1.LabelSelector{},
			ResourceGroups:    drawQuotas(t, true),
			CohortName:        rapid.SampledFrom([]kueue.CohortReference{"root", "left", "right"}).Draw(t, "cohort"),
			QueueingStrategy:  rapid.SampledFrom([]kueue.QueueingStrategy{kueue.StrictFIFO, kueue.BestEffortFIFO}).Draw(t, "strategy"),
			Preemption: &kueue.ClusterQueuePreemption{
				ReclaimWithinCohort: rapid.SampledFrom(policies).Draw(t, "reclaim"),
				WithinClusterQueue:  rapid.SampledFrom([]kueue.PreemptionPolicy{kueue.PreemptionPolicyNever, kueue.PreemptionPolicyLowerPriority, kueue.PreemptionPolicyLowerOrNewerEqualPriority}).Draw(t, "within"),
			},
		}
		name := fmt.Sprintf("q%d", i)
		if err := w.SetClusterQueue(name, spec); err != nil {
			t.Fatal(err)
		}
		w.SetLocalQueue(in(name), kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(name)})
	}
	return w
}

// happen does one thing at random.
func (w *world) happen(t *rapid.T) {
	w.now = w.now.Add(time.Second)
	known := func() string { return rapid.SampledFrom(w.names).Draw(t, "workload") }
	what := rapid.SampledFrom([]string{"submit", "submit", "submit", "finish", "delete", "priority", "active"}).Draw(t, "what")
	if len(w.names) == 0 {
		what = "submit"
	}
	switch what {
	case "submit":
		name := fmt.Sprintf("w%03d", len(w.names))
		w.names = append(w.names, name)
		set := PodSet{Name: "main", Count: int32(rapid.IntRange(1, 3).Draw(t, "count")), Requests: corev1.ResourceList{"cpu": drawQuantity(t, 4)}}
		if set.Count > 1 && rapid.Bool().Draw(t, "shrinks") {
			least := int32(1)
			set.MinCount = &least
		}
		w.SetWorkload(Workload{
			NamespacedName: in(name), UID: "uid-" + name, Created: w.now, Priority: int32(rapid.IntRange(0, 2).Draw(t, "priority")),
			Queue: fmt.Sprintf("q%d", rapid.IntRange(0, len(w.queues)-1).Draw(t, "queue")), PodSets: []PodSet{set},
		})
	case "finish":
		w.Finish(in(known()))
	case "delete":
		w.DeleteWorkload(in(known()))
	case "priority", "active":
		spec, there := w.Workload(in(known()))
		if !there {
			return
		}
		if what == "priority" {
			spec.Priority = int32(rapid.IntRange(0, 2).Draw(t, "new priority"))
		} else {
			spec.Inactive = !spec.Inactive
		}
		w.SetWorkload(spec)
	}
}

// run lets the engine decide for a while. What is evicted gives its quota back at once; workloads may evict each other
// without end.
func (w *world) run(check func(Decision)) (log []Decision) {
	for range 60 {
		r := w.Cycle(w.now)
		for _, d := range r.Decisions {
			check(d)
			log = append(log, d)
			if d.Kind == Evict {
				w.Release(d.Workload)
			}
			for _, target := range d.Targets {
				w.Release(target.Workload)
			}
		}
		if r.Settled {
			at, more := w.RequeueAt()
			if !more {
				return log
			}
			w.Requeue(at)
		}
	}
	return log
}

func (w *world) usageNow() map[string][]Amount {
	w.rebuild()
	all := map[string][]Amount{}
	for name, n := range w.nodes {
		all["cohort "+name] = slices.Clone(n.usage)
	}
	for name, q := range w.queues {
		all["queue "+name] = slices.Clone(q.usage)
	}
	return all
}

func TestUsageStaysWithinWhatTheTreeHas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		for range rapid.IntRange(1, 25).Draw(t, "events") {
			w.happen(t)
			w.run(func(d Decision) {
				if d.Kind != Admit {
					return
				}
				for _, q := range w.ordered {
					for p, i := range q.at {
						if i >= 0 && q.available(p) < 0 {
							t.Fatalf("after admitting %s queue %s has %d of %v available", d.Workload, q.name, q.available(p), q.tree.pairs[p])
						}
					}
				}
			})
		}
	})
}

func TestIncrementalUsageEqualsCountedUsage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		for range rapid.IntRange(1, 25).Draw(t, "events") {
			w.happen(t)
			w.run(func(Decision) {})
			incremental := w.usageNow()
			w.stale = true
			if counted := w.usageNow(); !reflect.DeepEqual(incremental, counted) {
				t.Fatalf("incremental %v, counted %v", incremental, counted)
			}
		}
	})
}

func TestEqualEnginesDecideTheSameAndACopyIsOnItsOwn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		for range rapid.IntRange(1, 20).Draw(t, "events") {
			w.happen(t)
			copied := &world{Engine: w.Clone(), now: w.now}
			before := w.usageNow()
			theirs := copied.run(func(Decision) {})
			if after := w.usageNow(); !reflect.DeepEqual(before, after) {
				t.Fatalf("what the copy did was seen by the original: %v, then %v", before, after)
			}
			if ours := w.run(func(Decision) {}); !reflect.DeepEqual(ours, theirs) {
				t.Fatalf("the original decided %v, the copy %v", ours, theirs)
			}
		}
	})
}

func TestNoVictimIsTakenWithoutNeed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		for range rapid.IntRange(1, 25).Draw(t, "events") {
			w.happen(t)
			w.rebuild()
			for _, q := range w.ordered {
				for _, waiting := range q.waiting.items {
					s := search{engine: w.Engine, w: waiting, q: q}
					a := s.assign(nil)
					if a.mode != needsPreemption {
						continue
					}
					before := w.usageNow()
					hunt := w.hunt(waiting, q, a.needs(), a.demand(waiting))
					victims := hunt.victims()
					if after := w.usageNow(); !reflect.DeepEqual(before, after) {
						t.Fatalf("the search for victims changed the usage: %v, then %v", before, after)
					}
					for i := range victims {
						for k, v := range victims {
							if k != i {
								v.w.lift()
							}
						}
						spare := hunt.fits(!mustStayWithin(victims))
						for k, v := range victims {
							if k != i {
								v.w.put()
							}
						}
						if spare && i < len(victims)-1 {
							t.Fatalf("%s would fit without evicting %s", waiting, victims[i].w)
						}
					}
				}
			}
			w.run(func(Decision) {})
		}
	})
}

// mustStayWithin reports whether victims were only allowed because the preemptor's queue stays within its nominal
// quota: evicting fewer might fit by borrowing, but is forbidden then.
func mustStayWithin(victims []victim) bool {
	return slices.ContainsFunc(victims, func(v victim) bool { return v.reason == kueue.InCohortReclamationReason })
}

func TestWhatIfChangesNothingAndComesTrue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		for range rapid.IntRange(1, 15).Draw(t, "events") {
			w.happen(t)
			w.run(func(Decision) {})
		}
		spec := Workload{
			NamespacedName: in("asked"), UID: "asked", Created: w.now, Priority: 5, Queue: "q0",
			PodSets: []PodSet{{Name: "main", Count: 1, Requests: corev1.ResourceList{"cpu": drawQuantity(t, 6)}}},
		}
		before, pending := w.usageNow(), w.Pending("q0")
		answer := w.WhatIf(spec, w.now)
		if after := w.usageNow(); !reflect.DeepEqual(before, after) || !slices.Equal(pending, w.Pending("q0")) {
			t.Fatal("the question changed the engine")
		}
		w.SetWorkload(spec)
		kinds := map[Kind]bool{}
		w.run(func(d Decision) {
			if d.Workload == spec.NamespacedName {
				kinds[d.Kind] = true
			}
		})
		if answer.Kind != Wait && !kinds[answer.Kind] {
			t.Fatalf("the answer was %q, but what came is %v", answer.Text(), slices.Sorted(maps.Keys(kinds)))
		}
	})
}

func TestAnEngineMadeAnewFromItsWorkloadsHoldsTheSameQuota(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		for range rapid.IntRange(1, 25).Draw(t, "events") {
			w.happen(t)
			w.run(func(Decision) {})
		}
		again := New(w.config)
		// Workloads first, queues later: the order in which objects are seen after a restart is not known.
		for _, name := range w.names {
			if spec, there := w.Workload(in(name)); there {
				again.SetWorkload(spec)
			}
		}
		for name, spec := range w.flavors {
			again.SetFlavor(name, spec)
		}
		for name, spec := range w.cohorts {
			again.SetCohort(name, spec)
		}
		for name, l := range w.localQueues {
			again.SetLocalQueue(name, l.spec)
		}
		for name, q := range w.queues {
			if err := again.SetClusterQueue(name, q.spec); err != nil {
				t.Fatal(err)
			}
		}
		for name := range w.queues {
			if ours, theirs := w.Usage(name), again.Usage(name); !slices.EqualFunc(ours, theirs, func(a, b FlavorUsage) bool {
				return a.Flavor == b.Flavor && a.Reserved.Cmp(b.Reserved) == 0 && a.Borrowed.Cmp(b.Borrowed) == 0
			}) {
				t.Fatalf("queue %s has %v, and made anew %v", name, ours, theirs)
			}
			if ours, theirs := len(w.Pending(name)), len(again.Pending(name)); ours != theirs {
				t.Fatalf("queue %s has %d pending, and made anew %d", name, ours, theirs)
			}
		}
	})
}
