package inprocess

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	config "sigs.k8s.io/kueue/apis/config/v1beta2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	qcache "sigs.k8s.io/kueue/pkg/cache/queue"
	schdcache "sigs.k8s.io/kueue/pkg/cache/scheduler"
	"sigs.k8s.io/kueue/pkg/controller/core"
	"sigs.k8s.io/kueue/pkg/controller/core/indexer"
	tasindexer "sigs.k8s.io/kueue/pkg/controller/tas/indexer"
	"sigs.k8s.io/kueue/pkg/scheduler"
	preemptexpectations "sigs.k8s.io/kueue/pkg/scheduler/preemption/expectations"
	utiltesting "sigs.k8s.io/kueue/pkg/util/testing"
	"sigs.k8s.io/kueue/pkg/workload"
	workloadevict "sigs.k8s.io/kueue/pkg/workload/evict"
	workloadfinish "sigs.k8s.io/kueue/pkg/workload/finish"
	workloadpatching "sigs.k8s.io/kueue/pkg/workload/patching"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/conformance"
)

const (
	namespace      = "default"
	betweenSteps   = 3 * time.Second
	betweenSubmits = time.Second
	// maxCycles is beyond what any scenario needs that comes to rest: workloads may evict each other until their LocalQueues have
	// paid so many penalties that they change places.
	maxCycles, maxCyclesWithUsage = 300, 2000
)

// requeuer moves inadmissible workloads back to their queues on request.
type requeuer interface {
	ProcessRequeues(ctx context.Context) int
}

// run is a scenario under way.
type run struct {
	ctx       context.Context
	rhythm    *rand.Rand // nil: always the usual patience
	client    client.Client
	clock     *clocktesting.FakeClock
	start     time.Time
	cache     *schdcache.Cache
	manager   *qcache.Manager
	requeuer  requeuer
	scheduler *scheduler.Scheduler
	workload  *core.WorkloadReconciler
	usage     *core.LocalQueueReconciler // nil without admission fair sharing
	usageDue  map[string]time.Time       // when LocalQueues are reconciled again
	local     map[string]*kueue.LocalQueue
	queues    map[string]*kueue.ClusterQueue
	classes   map[string]int32
	nodes     map[string]*corev1.Node
	pods      map[string]*corev1.Pod
	uids      func(workload string) string
	otherUIDs bool
	// workloads are as the controllers last saw them; touched are the names of those that were written to since.
	workloads []*kueue.Workload
	touched   map[string]bool
	podsReady bool       // Kueue waits for the pods of workloads to be ready
	measuring bool       // then conditions are not written
	lock      sync.Mutex // of touched: victims are evicted beside each other
	events    []conformance.Event
}

func newRun(s *conformance.Scenario, o Options) (*run, error) {
	r := &run{
		ctx: ctrl.LoggerInto(context.Background(), ctrl.Log), otherUIDs: o.OtherUIDs, uids: s.UIDs(),
		start: time.Unix(1_700_000_000, 0), queues: map[string]*kueue.ClusterQueue{}, local: map[string]*kueue.LocalQueue{},
		usageDue: map[string]time.Time{}, classes: map[string]int32{}, nodes: map[string]*corev1.Node{}, pods: map[string]*corev1.Pod{}, touched: map[string]bool{},
	}
	r.clock = clocktesting.NewFakeClock(r.start)
	if o.Rhythm != 0 {
		r.rhythm = rand.New(rand.NewPCG(o.Rhythm, 0)) //nolint:gosec // it draws test cases
	}
	builder, kept := newBuilder()
	builder.
		WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{"kubernetes.io/metadata.name": namespace}}}).
		WithStatusSubresource(&kueue.Workload{}, &kueue.ClusterQueue{}, &kueue.LocalQueue{}).
		WithInterceptorFuncs(r.watch(kept))
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
	timestamp := config.EvictionTimestamp
	options := []core.Option{core.WithPreemptionExpectations(expected)}
	blocks := false
	if w := s.WaitForPodsReady; w != nil {
		if w.Timestamp != "" {
			timestamp = config.RequeuingTimestamp(w.Timestamp)
		}
		options = append(options, waitForPodsReady(w))
		r.podsReady, blocks = true, w.BlockAdmission
	}
	usage := usageConfig(s)
	options = append(options, core.WithAdmissionFairSharing(usage))
	r.cache = schdcache.New(r.client, schdcache.WithFairSharing(fair != nil), schdcache.WithPodsReadyTracking(blocks),
		schdcache.WithAdmissionFairSharing(usage))
	manager, requeuer := qcache.NewManagerForUnitTestsWithRequeuer(r.client, r.cache, qcache.WithClock(r.clock),
		qcache.WithPreemptionExpectations(expected), qcache.WithPodsReadyRequeuingTimestamp(timestamp),
		qcache.WithAdmissionFairSharing(usage))
	r.manager, r.requeuer = manager, requeuer
	r.scheduler = scheduler.New(manager, r.cache, r.client, recorder, scheduler.WithClock(nil, r.clock), scheduler.WithFairSharing(fair),
		scheduler.WithPreemptionExpectations(expected), scheduler.WithPodsReadyRequeuingTimestamp(timestamp),
		scheduler.WithAdmissionFairSharing(usage))
	admitBy(r.scheduler, atOnce{})
	r.workload = core.NewWorkloadReconciler(r.client, manager, r.cache, recorder, options...)
	useClock(r.workload, r.clock)
	if usage != nil {
		r.usage = core.NewLocalQueueReconciler(r.client, manager, r.cache, core.WithClock(r.clock), core.WithAdmissionFairSharingConfig(usage))
	}
	return r, r.setUp(s)
}

// newBuilder is utiltesting.NewClientBuilder without the kinds that are not needed and without managed fields, which took
// two thirds of the time.
func newBuilder() (*fake.ClientBuilder, *store) {
	scheme := runtime.NewScheme()
	core := corev1.SchemeGroupVersion
	scheme.AddKnownTypes(core, &corev1.Namespace{}, &corev1.NamespaceList{}, &corev1.Node{}, &corev1.NodeList{}, &corev1.Pod{}, &corev1.PodList{},
		&corev1.LimitRange{}, &corev1.LimitRangeList{})
	metav1.AddToGroupVersion(scheme, core)
	utilruntime.Must(kueue.AddToScheme(scheme))
	kept := &store{ObjectTracker: clienttesting.NewObjectTracker(scheme, serializer.NewCodecFactory(scheme).UniversalDecoder()), scheme: scheme}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjectTracker(kept.ObjectTracker).
		WithIndex(&kueue.LocalQueue{}, indexer.QueueClusterQueueKey, indexer.IndexQueueClusterQueue).
		WithIndex(&kueue.Workload{}, indexer.WorkloadQueueKey, indexer.IndexWorkloadQueue).
		WithIndex(&kueue.Workload{}, indexer.WorkloadClusterQueueKey, indexer.IndexWorkloadClusterQueue).
		WithIndex(&kueue.Workload{}, indexer.OwnerReferenceUID, indexer.IndexOwnerUID), kept
}

// setUp creates what is there before the first step.
func (r *run) setUp(s *conformance.Scenario) error {
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
		local.Spec.ClusterQueue, local.Spec.FairSharing = kueue.ClusterQueueReference(l.ClusterQueue), l.FairSharing
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
		if err := r.reconcileUsage(l.Name); err != nil {
			return err
		}
	}
	r.requeuer.ProcessRequeues(r.ctx)
	return nil
}

// addQueue creates a ClusterQueue with the defaults of its definition.
func (r *run) addQueue(q conformance.ClusterQueue) error {
	queue := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: q.Name}, Spec: *q.Spec.DeepCopy()}
	spec := &queue.Spec
	if spec.NamespaceSelector == nil {
		spec.NamespaceSelector = &metav1.LabelSelector{}
	}
	spec.QueueingStrategy = cmp.Or(spec.QueueingStrategy, kueue.BestEffortFIFO)
	if spec.Preemption == nil {
		spec.Preemption = &kueue.ClusterQueuePreemption{}
	}
	p := spec.Preemption
	p.WithinClusterQueue = cmp.Or(p.WithinClusterQueue, kueue.PreemptionPolicyNever)
	p.ReclaimWithinCohort = cmp.Or(p.ReclaimWithinCohort, kueue.PreemptionPolicyNever)
	if p.BorrowWithinCohort == nil {
		p.BorrowWithinCohort = &kueue.BorrowWithinCohort{Policy: kueue.BorrowWithinCohortPolicyNever}
	}
	if spec.FlavorFungibility == nil {
		spec.FlavorFungibility = &kueue.FlavorFungibility{}
	}
	spec.FlavorFungibility.WhenCanBorrow = cmp.Or(spec.FlavorFungibility.WhenCanBorrow, kueue.MayStopSearch)
	spec.FlavorFungibility.WhenCanPreempt = cmp.Or(spec.FlavorFungibility.WhenCanPreempt, kueue.TryNextFlavor)
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

// uid is a workload's, with which Kueue breaks ties.
func (r *run) uid(name string) string {
	uid := r.uids(name)
	if r.otherUIDs {
		uid = strings.Map(opposite, uid)
	}
	return uid
}

// opposite turns the order of hexadecimal digits round.
func opposite(digit rune) rune {
	const digits = "0123456789abcdef"
	if at := strings.IndexRune(digits, digit); at >= 0 {
		return rune(digits[len(digits)-1-at])
	}
	return digit
}

// step applies a step, runs Kueue until nothing changes, and records the resulting state.
func (r *run) step(s *conformance.Step) (conformance.Outcome, error) {
	r.events = []conformance.Event{}
	if err := r.pass(betweenSteps); err != nil {
		return conformance.Outcome{}, err
	}
	at := r.seconds(metav1.NewTime(r.clock.Now()))
	r.touchDue()
	if err := r.deliver(); err != nil {
		return conformance.Outcome{}, err
	}
	if err := r.do(s); err != nil {
		return conformance.Outcome{}, err
	}
	if err := r.rest(); err != nil {
		return conformance.Outcome{}, err
	}
	return r.outcome(at)
}

// rest runs cycles until Kueue has nothing left to do. Evicted workloads give back their quota before the next cycle, and
// inadmissible workloads come back when all heads were tried.
func (r *run) rest() error {
	quiet, before, enough := 0, "", r.patience()
	if err := r.deliver(); err != nil {
		return err
	}
	most := maxCycles
	if r.usage != nil {
		most = maxCyclesWithUsage
	}
	for range most {
		if r.hasHeads() && quiet < enough {
			cycle(r.scheduler, r.ctx)
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
		quiet, before, enough = 0, "", r.patience()
	}
	return &conformance.RestlessError{Events: r.events}
}

// patience is how many cycles without any event a head is tried this time, before it is left alone.
func (r *run) patience() int {
	if r.rhythm == nil {
		return patience
	}
	return patience + r.rhythm.IntN(4)
}

// standing lists the workloads that hold quota, their numbers of evictions, and the inadmissible ones.
func (r *run) standing() string {
	var b strings.Builder
	for _, wl := range r.workloads {
		fmt.Fprint(&b, wl.Name, workload.HasQuotaReservation(wl), workload.Status(wl), len(r.events), " ")
	}
	inadmissible := r.manager.DumpInadmissible()
	for _, name := range slices.Sorted(maps.Keys(inadmissible)) {
		workloads := inadmissible[name]
		slices.Sort(workloads)
		fmt.Fprint(&b, name, workloads)
	}
	return b.String()
}

// watch notes which workloads are written to.
func (r *run) watch(kept *store) interceptor.Funcs {
	note := func(obj client.Object) {
		if _, is := obj.(*kueue.Workload); is {
			r.lock.Lock()
			defer r.lock.Unlock()
			r.touched[obj.GetName()] = true
		}
	}
	return interceptor.Funcs{
		Get: kept.read,
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
			wl, is := obj.(*kueue.Workload)
			switch {
			case !is:
				return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
			case r.measuring && !workloadevict.IsEvicted(wl):
				return nil
			}
			note(wl)
			if err := kept.patchStatus(wl, patch); err != nil {
				return err
			}
			if waitsForPods(wl) {
				return r.deliver() // Kueue's scheduler now waits until they are ready
			}
			return nil
		},
	}
}

// waitsForPods reports whether a workload may not be admitted before the pods of others are ready.
func waitsForPods(wl *kueue.Workload) bool {
	reserved := apimeta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadQuotaReserved)
	return reserved != nil && reserved.Reason == kueue.WorkloadWaiting //nolint:staticcheck // as Kueue does by default
}

// touchAll lets all workloads be looked at again.
func (r *run) touchAll() {
	for _, wl := range r.workloads {
		r.touched[wl.Name] = true
	}
}

// touchDue lets the workloads be looked at whose backoff ends.
func (r *run) touchDue() {
	for _, wl := range r.workloads {
		if state := wl.Status.RequeueState; state != nil && state.RequeueAt != nil && !r.clock.Now().Before(state.RequeueAt.Time) {
			r.touched[wl.Name] = true
		}
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
			switch {
			case workloadevict.IsEvicted(wl):
				if err := r.stopJob(request.NamespacedName); err != nil {
					return err
				}
			case r.podsReady && workload.IsAdmitted(wl) && !apimeta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadPodsReady):
				if err := r.setPodsReady(request.NamespacedName, metav1.ConditionTrue, kueue.WorkloadStarted); err != nil {
					return err
				}
			}
		}
	}
	return errors.New("the controllers do not come to rest")
}

// setPodsReady is the job controller's part of pods that are ready, or not.
func (r *run) setPodsReady(name types.NamespacedName, status metav1.ConditionStatus, reason string) error {
	wl := &kueue.Workload{}
	if err := r.client.Get(r.ctx, name, wl); err != nil {
		return err
	}
	if workloadevict.IsEvicted(wl) || !workload.IsAdmitted(wl) {
		return nil
	}
	apimeta.SetStatusCondition(&wl.Status.Conditions, workload.CreatePodsReadyCondition(status, reason, "", r.clock))
	return r.client.Status().Update(r.ctx, wl)
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
