package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	config "sigs.k8s.io/kueue/apis/config/v1beta2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	qcache "sigs.k8s.io/kueue/pkg/cache/queue"
	schdcache "sigs.k8s.io/kueue/pkg/cache/scheduler"
	"sigs.k8s.io/kueue/pkg/controller/core"
	tasindexer "sigs.k8s.io/kueue/pkg/controller/tas/indexer"
	"sigs.k8s.io/kueue/pkg/scheduler"
	preemptexpectations "sigs.k8s.io/kueue/pkg/scheduler/preemption/expectations"
	utiltesting "sigs.k8s.io/kueue/pkg/util/testing"
	"sigs.k8s.io/kueue/pkg/workload"
	workloadevict "sigs.k8s.io/kueue/pkg/workload/evict"
	workloadfinish "sigs.k8s.io/kueue/pkg/workload/finish"
	workloadpatching "sigs.k8s.io/kueue/pkg/workload/patching"
)

const (
	namespace      = "default"
	betweenSteps   = 3 * time.Second
	betweenSubmits = time.Second
	// maxCycles is beyond what any scenario needs that comes to rest.
	maxCycles = 300
)

// requeuer moves inadmissible workloads back to their queues on request.
type requeuer interface {
	ProcessRequeues(ctx context.Context) int
}

// run is a scenario under way.
type run struct {
	ctx       context.Context
	patience  int
	client    client.Client
	clock     *clocktesting.FakeClock
	start     time.Time
	cache     *schdcache.Cache
	manager   *qcache.Manager
	requeuer  requeuer
	scheduler *scheduler.Scheduler
	workload  *core.WorkloadReconciler
	local     map[string]*kueue.LocalQueue
	queues    map[string]*kueue.ClusterQueue
	classes   map[string]int32
	nodes     map[string]*corev1.Node
	pods      map[string]*corev1.Pod
	uids      map[string]string
	plain     bool // UIDs are the names
	name      string
	// workloads are as the controllers last saw them; touched are the names of those that were written to since.
	workloads []*kueue.Workload
	touched   map[string]bool
	measuring bool       // then conditions are not written
	lock      sync.Mutex // of touched: victims are evicted beside each other
	events    []recordedEvent
}

func newRun(s *scenario, patience int) (*run, error) {
	r := &run{
		ctx: ctrl.LoggerInto(context.Background(), ctrl.Log), patience: patience, name: s.Name,
		start: time.Unix(1_700_000_000, 0), queues: map[string]*kueue.ClusterQueue{}, local: map[string]*kueue.LocalQueue{},
		classes: map[string]int32{}, nodes: map[string]*corev1.Node{}, pods: map[string]*corev1.Pod{}, uids: map[string]string{}, touched: map[string]bool{},
	}
	r.clock = clocktesting.NewFakeClock(r.start)
	for _, o := range s.Outcomes {
		for name, w := range o.Workloads {
			r.uids[name] = w.UID
		}
	}
	builder := utiltesting.NewClientBuilder().
		WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{"kubernetes.io/metadata.name": namespace}}}).
		WithStatusSubresource(&kueue.Workload{}, &kueue.ClusterQueue{}, &kueue.LocalQueue{}).
		WithInterceptorFuncs(r.watch())
	if err := tasindexer.SetupIndexes(r.ctx, utiltesting.AsIndexer(builder)); err != nil {
		return nil, err
	}
	r.client = builder.Build()
	recorder := &utiltesting.EventRecorder{}
	expected := preemptexpectations.New()
	var fair *config.FairSharing
	if s.FairSharing != nil {
		fair = &config.FairSharing{}
		for _, p := range s.FairSharing.PreemptionStrategies {
			fair.PreemptionStrategies = append(fair.PreemptionStrategies, config.PreemptionStrategy(p))
		}
	}
	r.cache = schdcache.New(r.client, schdcache.WithFairSharing(fair != nil))
	manager, requeuer := qcache.NewManagerForUnitTestsWithRequeuer(r.client, r.cache, qcache.WithClock(r.clock),
		qcache.WithPreemptionExpectations(expected))
	r.manager, r.requeuer = manager, requeuer
	r.scheduler = scheduler.New(manager, r.cache, r.client, recorder, scheduler.WithClock(nil, r.clock), scheduler.WithFairSharing(fair),
		scheduler.WithPreemptionExpectations(expected))
	r.scheduler.AdmitAtOnce()
	r.workload = core.NewWorkloadReconciler(r.client, manager, r.cache, recorder, core.WithPreemptionExpectations(expected))
	r.workload.UseClock(r.clock)
	return r, r.setUp(s)
}

// setUp creates what is there before the first step.
func (r *run) setUp(s *scenario) error {
	log := ctrl.Log
	for _, c := range s.PriorityClasses {
		r.classes[c.Name] = c.Value
	}
	for i := range s.Nodes {
		if err := r.setNode(&s.Nodes[i]); err != nil {
			return err
		}
	}
	for i := range s.Pods {
		if err := r.setPod(&s.Pods[i]); err != nil {
			return err
		}
	}
	for _, t := range s.Topologies {
		topology := &kueue.Topology{ObjectMeta: metav1.ObjectMeta{Name: t.Name}, Spec: t.Spec}
		if err := r.client.Create(r.ctx, topology.DeepCopy()); err != nil {
			return err
		}
		r.cache.AddOrUpdateTopology(log, topology)
	}
	for _, f := range s.Flavors {
		flavor := &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: f.Name}, Spec: f.Spec}
		if err := r.client.Create(r.ctx, flavor.DeepCopy()); err != nil {
			return err
		}
		r.cache.AddOrUpdateResourceFlavor(log, flavor)
	}
	for _, c := range s.Cohorts {
		cohort := &kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: c.Name}, Spec: c.Spec}
		if err := r.client.Create(r.ctx, cohort.DeepCopy()); err != nil {
			return err
		}
		if err := r.cache.AddOrUpdateCohort(cohort); err != nil {
			return err
		}
		r.manager.AddOrUpdateCohort(r.ctx, cohort)
	}
	for _, q := range s.ClusterQueues {
		if err := r.addQueue(q); err != nil {
			return err
		}
	}
	for _, l := range s.LocalQueues {
		local := &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: l.Name, Namespace: namespace}}
		local.Spec.ClusterQueue = kueue.ClusterQueueReference(l.ClusterQueue)
		if err := r.client.Create(r.ctx, local.DeepCopy()); err != nil {
			return err
		}
		r.local[l.Name] = local
		if err := r.cache.AddLocalQueue(local); err != nil {
			return err
		}
		if err := r.manager.AddLocalQueue(r.ctx, local); err != nil {
			return err
		}
	}
	r.requeuer.ProcessRequeues(r.ctx)
	return nil
}

// addQueue creates a ClusterQueue with the defaults of its definition.
func (r *run) addQueue(q named[kueue.ClusterQueueSpec]) error {
	queue := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: q.Name}, Spec: q.Spec}
	spec := &queue.Spec
	if spec.NamespaceSelector == nil {
		spec.NamespaceSelector = &metav1.LabelSelector{}
	}
	if spec.QueueingStrategy == "" {
		spec.QueueingStrategy = kueue.BestEffortFIFO
	}
	if spec.Preemption == nil {
		spec.Preemption = &kueue.ClusterQueuePreemption{}
	}
	p := spec.Preemption
	if p.WithinClusterQueue == "" {
		p.WithinClusterQueue = kueue.PreemptionPolicyNever
	}
	if p.ReclaimWithinCohort == "" {
		p.ReclaimWithinCohort = kueue.PreemptionPolicyNever
	}
	if p.BorrowWithinCohort == nil {
		p.BorrowWithinCohort = &kueue.BorrowWithinCohort{Policy: kueue.BorrowWithinCohortPolicyNever}
	}
	if spec.FlavorFungibility == nil {
		spec.FlavorFungibility = &kueue.FlavorFungibility{}
	}
	if spec.FlavorFungibility.WhenCanBorrow == "" {
		spec.FlavorFungibility.WhenCanBorrow = kueue.MayStopSearch
	}
	if spec.FlavorFungibility.WhenCanPreempt == "" {
		spec.FlavorFungibility.WhenCanPreempt = kueue.TryNextFlavor
	}
	apimeta.SetStatusCondition(&queue.Status.Conditions, metav1.Condition{Type: kueue.ClusterQueueActive, Status: metav1.ConditionTrue, Reason: "Ready"})
	created := queue.DeepCopy()
	if err := r.client.Create(r.ctx, created); err != nil {
		return err
	}
	created.Status = queue.Status
	if err := r.client.Status().Update(r.ctx, created); err != nil {
		return err
	}
	r.queues[q.Name] = queue
	if err := r.cache.AddClusterQueue(r.ctx, queue); err != nil {
		return err
	}
	return r.manager.AddClusterQueue(r.ctx, queue)
}

func (r *run) seconds(t metav1.Time) int64 { return int64(t.Sub(r.start) / time.Second) }

// uid looks random, so that it does not follow the order of creation; it is the same whenever the scenario is played.
func (r *run) uid(name string) string {
	switch uid := r.uids[name]; {
	case uid != "":
		return uid
	case r.plain:
		return name
	}
	h := sha256.Sum256([]byte(r.name + "/" + name))
	return fmt.Sprintf("%x-%x-%x-%x-%x", h[:4], h[4:6], h[6:8], h[8:10], h[10:16])
}

// step applies a step, runs Kueue until nothing changes, and records the resulting state.
func (r *run) step(s *step) (outcome, error) {
	r.clock.Step(betweenSteps)
	at := r.seconds(metav1.NewTime(r.clock.Now()))
	r.events = []recordedEvent{}
	if err := r.do(s); err != nil {
		return outcome{}, err
	}
	if err := r.rest(); err != nil {
		return outcome{}, err
	}
	return r.outcome(at, true)
}

// rest runs cycles until Kueue has nothing left to do. Evicted workloads give back their quota before the next cycle, and
// inadmissible workloads come back when all heads were tried.
func (r *run) rest() error {
	quiet, before := 0, ""
	if err := r.deliver(); err != nil {
		return err
	}
	for range maxCycles {
		if r.manager.HasHeads() && quiet < r.patience {
			r.scheduler.Cycle(r.ctx)
			if err := r.deliver(); err != nil {
				return err
			}
			if now := r.standing(); now != before {
				before, quiet = now, 0
			} else {
				quiet++
			}
			continue
		}
		if r.requeuer.ProcessRequeues(r.ctx) == 0 {
			return nil
		}
		quiet, before = 0, ""
	}
	return errors.New("it does not come to rest")
}

// standing lists the workloads that hold quota, their numbers of evictions, and the inadmissible ones.
func (r *run) standing() string {
	var b strings.Builder
	for _, wl := range r.workloads {
		fmt.Fprint(&b, wl.Name, workload.HasQuotaReservation(wl), workload.Status(wl), len(r.events), " ")
	}
	inadmissible := r.manager.DumpInadmissible()
	for _, name := range slices.Sorted(keys(inadmissible)) {
		workloads := inadmissible[name]
		slices.Sort(workloads)
		fmt.Fprint(&b, name, workloads)
	}
	return b.String()
}

// watch notes which workloads are written to.
func (r *run) watch() interceptor.Funcs {
	note := func(obj client.Object) {
		if _, is := obj.(*kueue.Workload); is {
			r.lock.Lock()
			defer r.lock.Unlock()
			r.touched[obj.GetName()] = true
		}
	}
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			defer note(obj)
			return c.Create(ctx, obj, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			defer note(obj)
			return c.Update(ctx, obj, opts...)
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			defer note(obj)
			return c.SubResource(sub).Update(ctx, obj, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			if wl, is := obj.(*kueue.Workload); is && r.measuring && !workloadevict.IsEvicted(wl) {
				return nil
			}
			defer note(obj)
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
	}
}

// touchAll lets all workloads be looked at again.
func (r *run) touchAll() {
	for _, wl := range r.workloads {
		r.touched[wl.Name] = true
	}
}

// deliver tells the controllers of all changes of workloads, lets them reconcile, and plays the job controller, until
// nothing changes any more.
func (r *run) deliver() error {
	for range 100 {
		if len(r.touched) == 0 {
			return nil
		}
		touched := r.touched
		r.touched = map[string]bool{}
		for i, old := range r.workloads {
			if !touched[old.Name] {
				continue
			}
			now := &kueue.Workload{}
			if err := r.client.Get(r.ctx, client.ObjectKeyFromObject(old), now); err != nil {
				return err
			}
			if now.ResourceVersion != old.ResourceVersion {
				r.happened(old, now)
				r.workloads[i] = now
				r.workload.Update(event.TypedUpdateEvent[*kueue.Workload]{ObjectOld: old.DeepCopy(), ObjectNew: now.DeepCopy()})
			}
		}
		for _, wl := range r.workloads {
			if !touched[wl.Name] {
				continue
			}
			request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(wl)}
			if _, err := r.workload.Reconcile(r.ctx, request); err != nil {
				return err
			}
			if workloadevict.IsEvicted(wl) {
				if err := r.stopJob(request.NamespacedName); err != nil {
					return err
				}
			}
		}
	}
	return errors.New("the controllers do not come to rest")
}

// stopJob is the job controller's part of an eviction: the job has stopped, and the quota is released.
func (r *run) stopJob(name types.NamespacedName) error {
	wl := &kueue.Workload{}
	if err := r.client.Get(r.ctx, name, wl); err != nil {
		return err
	}
	if !workloadevict.IsEvicted(wl) || !workload.HasQuotaReservation(wl) || workloadfinish.IsFinished(wl) {
		return nil
	}
	evicted := apimeta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadEvicted)
	return workloadpatching.PatchAdmissionStatus(r.ctx, r.client, wl, r.clock, func(wl *kueue.Workload) (bool, error) {
		requeued := evicted.Reason == kueue.WorkloadEvictedByPreemption || evicted.Reason == kueue.WorkloadEvictedDueToNodeFailures
		workload.SetRequeuedCondition(wl, evicted.Reason, evicted.Message, requeued)
		workload.UnsetQuotaReservationWithCondition(wl, kueue.WorkloadPending, evicted.Message, r.clock.Now()) //nolint:staticcheck // as Kueue does by default
		return true, nil
	})
}

func keys[K comparable, V any](m map[K]V) func(func(K) bool) {
	return func(yield func(K) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}
