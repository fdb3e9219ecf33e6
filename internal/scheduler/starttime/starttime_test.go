package starttime_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/quota"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/starttime"
)

var began = time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)

// engine has the LocalQueue "queue" of a ClusterQueue with some CPUs, in which higher priorities preempt lower ones.
func engine(t *testing.T, cpus int) *quota.Engine {
	t.Helper()
	e := quota.New(quota.Config{})
	e.SetNamespace("team", nil)
	e.SetFlavor("default", kueue.ResourceFlavorSpec{})
	err := e.SetClusterQueue("cq", kueue.ClusterQueueSpec{
		QueueingStrategy: kueue.BestEffortFIFO, NamespaceSelector: &metav1.LabelSelector{},
		ResourceGroups: []kueue.ResourceGroup{{CoveredResources: []corev1.ResourceName{"cpu"}, Flavors: []kueue.FlavorQuotas{{
			Name: "default", Resources: []kueue.ResourceQuota{{Name: "cpu", NominalQuota: *resource.NewQuantity(int64(cpus), resource.DecimalSI)}},
		}}}},
		Preemption: &kueue.ClusterQueuePreemption{WithinClusterQueue: kueue.PreemptionPolicyLowerPriority},
	})
	if err != nil {
		t.Fatal(err)
	}
	e.SetLocalQueue(types.NamespacedName{Namespace: "team", Name: "queue"}, kueue.LocalQueueSpec{ClusterQueue: "cq"})
	return e
}

func named(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "team", Name: name}
}

func workload(name string, cpus int64, priority int32, created time.Time) quota.Workload {
	return quota.Workload{
		NamespacedName: named(name), UID: name, Created: created, Priority: priority, Queue: "queue",
		PodSets: []quota.PodSet{{Name: "main", Count: 1, Requests: corev1.ResourceList{"cpu": *resource.NewQuantity(cpus, resource.DecimalSI)}}},
	}
}

var job = starttime.Class{Namespace: "team", Queue: "queue", Kind: "Job"}

// full is an engine whose four CPUs "runs" holds, and for which "waits" waits.
func full(t *testing.T) *quota.Engine {
	t.Helper()
	e := engine(t, 4)
	e.SetWorkload(workload("runs", 4, 0, began))
	e.SetWorkload(workload("waits", 4, 0, began.Add(time.Second)))
	for range 3 {
		e.Cycle(began)
	}
	return e
}

func TestAWorkloadStartsWhenTheOneBeforeItEnds(t *testing.T) {
	in := starttime.Queues{
		Engine: full(t), Now: began,
		Running: map[types.NamespacedName]starttime.Run{named("runs"): {Left: func(u float64) time.Duration { return time.Duration(u * float64(time.Hour)) }}},
		Waiting: map[types.NamespacedName]starttime.Class{named("waits"): job},
	}
	i, ok := starttime.Of(in, named("waits"))
	near := func(a, b time.Duration) bool { return (a - b).Abs() < 8*time.Minute }
	if !ok || !near(i.Earliest, 6*time.Minute) || !near(i.Median, 30*time.Minute) || !near(i.Latest, 54*time.Minute) {
		t.Errorf("got %+v, %v", i, ok)
	}
	if again, _ := starttime.Of(in, named("waits")); again != i {
		t.Errorf("another time it is %+v", again)
	}
	if where, _ := in.Engine.Position(named("waits")); where != 0 || len(in.Engine.Pending("cq")) != 1 {
		t.Error("the engine was changed")
	}
}

func TestWithoutAKnownRunTimeNoStartIsKnown(t *testing.T) {
	in := starttime.Queues{Engine: full(t), Now: began, Running: map[types.NamespacedName]starttime.Run{named("runs"): {Class: job, Ran: time.Minute}}}
	for range 4 {
		in.Times.Ended(job, time.Hour)
	}
	if i, ok := starttime.Of(in, named("waits")); ok {
		t.Errorf("of four ended workloads: %+v", i)
	}
	in.Times.Ended(job, time.Hour)
	if i, ok := starttime.Of(in, named("waits")); !ok || i.Median != 59*time.Minute+time.Second {
		t.Errorf("of five, each of which ran for an hour, and a queue that is looked at a second later: %+v, %v", i, ok)
	}
}

func TestWhatRunsStillCountsAmongTheRunTimes(t *testing.T) {
	var times starttime.RunTimes
	for n := range 10 {
		times.Ended(job, time.Duration(n+1)*time.Minute)
	}
	short := times.Left(job, 0, 0.5)
	for range 10 {
		times.Runs(job, 10*time.Minute)
	}
	if long := times.Left(job, 0, 0.5); long <= short {
		t.Errorf("with ten that have run as long as the longest: %v, not longer than %v", long, short)
	}
	for _, u := range []float64{0, 0.3, 0.999999} {
		if left := times.Left(job, time.Hour, u); left < 0 || left > 21*time.Hour {
			t.Errorf("after an hour the %v-quantile is %v", u, left)
		}
	}
}

// trace is a queue in which jobs of two priorities arrive, run for a time that nobody knows, and end.
type trace struct {
	t       *testing.T
	engine  *quota.Engine
	random  *rand.Rand
	now     time.Time
	all     map[types.NamespacedName]*traced
	ended   starttime.RunTimes
	arrived []starttime.Arrival
	n       int
}

type traced struct {
	spec    quota.Workload
	class   starttime.Class
	takes   time.Duration
	since   time.Time // when it was admitted; zero while it waits
	started time.Time // first
	predict *starttime.Interval
	at      time.Time // of the prediction
}

func (r *trace) arrive(at time.Time) *traced {
	r.n++
	class, mean := job, 3.0
	priority := int32(0)
	if r.random.IntN(4) == 0 {
		class.Kind, mean = "PyTorchJob", 4.0
	}
	if r.random.IntN(8) == 0 {
		priority = 10
	}
	w := &traced{
		spec:  workload(fmt.Sprintf("w%05d", r.n), 1+int64(r.random.IntN(4)), priority, at),
		class: class, takes: time.Duration(math.Exp(mean+0.8*r.random.NormFloat64()) * float64(time.Minute)),
	}
	r.all[w.spec.NamespacedName] = w
	r.engine.SetWorkload(w.spec)
	r.arrived = append(r.arrived, starttime.Arrival{Workload: w.spec, Class: class})
	return w
}

// settle carries the engine's decisions out.
func (r *trace) settle() {
	for {
		result := r.engine.Cycle(r.now)
		for _, d := range result.Decisions {
			switch d.Kind {
			case quota.Admit:
				w := r.all[d.Workload]
				w.since = r.now
				if w.started.IsZero() {
					w.started = r.now
				}
			case quota.Preempt:
				for _, target := range d.Targets {
					r.all[target.Workload].since = time.Time{}
					r.engine.Release(target.Workload)
				}
			}
		}
		if result.Settled {
			return
		}
	}
}

// next goes to the next end or look of the queue before a time, and reports whether there was one.
func (r *trace) next(before time.Time) bool {
	var first *traced
	for _, w := range r.all {
		if !w.since.IsZero() && (first == nil || cmp.Or(w.since.Add(w.takes).Compare(first.since.Add(first.takes)), cmp.Compare(w.spec.Name, first.spec.Name)) < 0) {
			first = w
		}
	}
	if at, due := r.engine.RequeueAt(); due && !at.After(before) && (first == nil || !at.After(first.since.Add(first.takes))) {
		r.now = at
		r.settle()
		return true
	}
	if first == nil || first.since.Add(first.takes).After(before) {
		return false
	}
	r.now = first.since.Add(first.takes)
	r.ended.Ended(first.class, first.takes)
	delete(r.all, first.spec.NamespacedName)
	r.engine.DeleteWorkload(first.spec.NamespacedName)
	r.settle()
	return true
}

// queues is what can be known of the trace now.
func (r *trace) queues() starttime.Queues {
	q := starttime.Queues{
		Engine: r.engine, Now: r.now, Running: map[types.NamespacedName]starttime.Run{}, Waiting: map[types.NamespacedName]starttime.Class{},
		Times: r.ended.Clone(), Arrivals: r.arrived, Window: r.now.Sub(began),
	}
	for name, w := range r.all {
		if w.since.IsZero() {
			q.Waiting[name] = w.class
			continue
		}
		q.Running[name] = starttime.Run{Class: w.class, Ran: r.now.Sub(w.since)}
		q.Times.Runs(w.class, r.now.Sub(w.since))
	}
	return q
}

// coverage is the share of the starts that are in their intervals, and how many are before and after.
func coverage(t *testing.T, seed uint64, jobs, every int) (within, before, after int) {
	t.Helper()
	r := &trace{t: t, engine: engine(t, 20), random: rand.New(rand.NewPCG(seed, 1)), now: began, all: map[types.NamespacedName]*traced{}}
	var queried []*traced
	at := began
	for n := range jobs {
		at = at.Add(time.Duration(r.random.ExpFloat64() * 5.5 * float64(time.Minute)))
		for r.next(at) {
		}
		r.now = at
		w := r.arrive(at)
		r.settle()
		if n < jobs/4 || n%every != 0 || !w.started.IsZero() {
			continue
		}
		if i, ok := starttime.Of(r.queues(), w.spec.NamespacedName); ok {
			w.predict, w.at = &i, at
			queried = append(queried, w)
		}
	}
	for r.next(at.Add(60 * 24 * time.Hour)) {
	}
	for _, w := range queried {
		switch wait := w.started.Sub(w.at); {
		case w.started.IsZero() || wait > w.predict.Latest:
			after++
		case wait < w.predict.Earliest:
			before++
		default:
			within++
		}
	}
	return within, before, after
}

func TestEightOfTenJobsStartInTheirInterval(t *testing.T) {
	var all [3]int
	for seed := range uint64(2) {
		within, before, after := coverage(t, seed, 400, 5)
		all[0], all[1], all[2] = all[0]+within, all[1]+before, all[2]+after
	}
	share := float64(all[0]) / float64(all[0]+all[1]+all[2])
	t.Logf("%d in their interval, %d before and %d after: %.1f %%", all[0], all[1], all[2], 100*share)
	if !(share >= 0.7 && share <= 0.9) {
		t.Errorf("%.1f %% started in their interval", 100*share)
	}
}
