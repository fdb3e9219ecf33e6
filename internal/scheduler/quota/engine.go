package quota

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/configuration"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/topology"
)

// Config is Kueue's configuration, as far as it decides.
type Config struct {
	// FairSharing switches fair sharing on; nil: classical preemption.
	FairSharing *FairSharing
	// AdmissionFairSharing orders workloads by what their LocalQueues have used, in the ClusterQueues that want it; nil: it is
	// off.
	AdmissionFairSharing *configuration.AdmissionFairSharing
	// RequeueInterval is how long workloads that could not be admitted wait after a change that may help them; 0:
	// Kueue's 1 s.
	RequeueInterval time.Duration
	// IgnoreUndeclared lets workloads ask for resources that their queue does not cover (resources.quotaCheckStrategy:
	// IgnoreUndeclared).
	IgnoreUndeclared bool
	// Resources defines which requested resources count.
	Resources configuration.Resources
	// PriorityBoost adds Workload.Boost to priorities (Kueue's feature gate of this name).
	PriorityBoost bool
	// LateKeepPlace lets workloads that were evicted because their pods were not ready in time keep their place in the
	// queue (waitForPodsReady.requeuingStrategy.timestamp: Creation).
	LateKeepPlace bool
	// NodesUnknown is set where topologies and nodes cannot be seen: that a flavor has a topology still decides who may
	// use it, but there is always a place.
	NodesUnknown bool
}

// FairSharing is Kueue's fairSharing configuration.
type FairSharing struct {
	// Strategies in order of use; empty: LessThanOrEqualToFinalShare, then LessThanInitialShare.
	Strategies []PreemptionStrategy
}

// PreemptionStrategy is when fair sharing may evict a workload of another queue.
type PreemptionStrategy string

const (
	// LessThanOrEqualToFinalShare means that the preemptor's share with its workload is at most the victim's without
	// the victim.
	LessThanOrEqualToFinalShare PreemptionStrategy = "LessThanOrEqualToFinalShare"
	// LessThanInitialShare means that the preemptor's share with its workload is below the victim's as it is.
	LessThanInitialShare PreemptionStrategy = "LessThanInitialShare"
)

// Engine holds the objects and the state that Kueue's scheduler carries from cycle to cycle. The zero value is not
// usable; see New.
type Engine struct {
	config Config

	flavors     map[string]kueue.ResourceFlavorSpec
	checks      map[string]bool // name to active
	namespaces  map[string]labels.Set
	cohorts     map[string]kueue.CohortSpec
	queues      map[string]*queue
	localQueues map[types.NamespacedName]*localQueue
	usages      *usages // nil without admission fair sharing
	// topologies have their levels; nodesByName are the nodes, also those that are not available, and otherPods what is on
	// them besides the workloads. None of the values is changed; they are replaced.
	topologies  map[string][]string
	nodesByName map[string]clusterNode
	otherPods   map[types.NamespacedName]otherPod
	places      *places
	workloads   map[types.NamespacedName]*workload
	// members are the workloads that name a LocalQueue, whether it is there or not.
	members map[types.NamespacedName]map[*workload]bool

	// ordered holds the queues by name, and roots the cohort trees; both are made by rebuild.
	ordered []*queue
	nodes   map[string]*node
	// stale is set by changes that rebuild must look at; touched names the cohorts and queues whose quota or place
	// changed.
	stale          bool
	touchedCohorts map[string]bool
	touchedQueues  map[string]bool

	// suspects are workloads that may have to go because their queue was stopped or they were deactivated.
	suspects map[*workload]bool

	// cycle counts the cycles in which something was tried.
	cycle int64
	// retries are the trees whose inadmissible workloads are to be queued again, and when; a zero time: an interval
	// after the next cycle.
	retries map[retry]time.Time
	// settled has what the cycles tried since something was last reported or decided: what comes again will come
	// forever.
	settled map[string]bool
}

// localQueue is a LocalQueue. It is replaced, not changed.
type localQueue struct {
	spec kueue.LocalQueueSpec
}

// stopped reports whether its workloads are kept out of the ClusterQueue.
func (l *localQueue) stopped() bool {
	return l.spec.StopPolicy != nil && *l.spec.StopPolicy != kueue.None
}

// New returns an engine that knows nothing yet.
func New(config Config) *Engine {
	if config.RequeueInterval == 0 {
		config.RequeueInterval = time.Second // Kueue's requeueBatchPeriod
	}
	return &Engine{
		config:         config,
		flavors:        map[string]kueue.ResourceFlavorSpec{},
		checks:         map[string]bool{},
		namespaces:     map[string]labels.Set{},
		cohorts:        map[string]kueue.CohortSpec{},
		queues:         map[string]*queue{},
		localQueues:    map[types.NamespacedName]*localQueue{},
		usages:         newUsages(config.AdmissionFairSharing),
		workloads:      map[types.NamespacedName]*workload{},
		topologies:     map[string][]string{},
		nodesByName:    map[string]clusterNode{},
		otherPods:      map[types.NamespacedName]otherPod{},
		places:         &places{of: map[string]*topology.Capacity{}, findings: map[finding]found{}},
		members:        map[types.NamespacedName]map[*workload]bool{},
		nodes:          map[string]*node{},
		touchedCohorts: map[string]bool{},
		touchedQueues:  map[string]bool{},
		retries:        map[retry]time.Time{},
		settled:        map[string]bool{},
		suspects:       map[*workload]bool{},
	}
}

// SetFlavor adds or changes a ResourceFlavor.
func (e *Engine) SetFlavor(name string, spec kueue.ResourceFlavorSpec) {
	e.changed()
	old, known := e.flavors[name]
	e.flavors[name] = spec
	e.stale = e.stale || !known
	if !known || !equality.Semantic.DeepEqual(old, spec) {
		if spec.TopologyName != nil || old.TopologyName != nil {
			e.places.stale, e.stale = true, true
		}
		for _, q := range e.queues {
			if q.offers(name) {
				e.retryLater(q)
			}
		}
	}
}

// SetNamespace adds or changes the labels of a namespace. Namespaces that were never set have none but the one with
// their name.
func (e *Engine) SetNamespace(name string, set map[string]string) {
	e.changed()
	if old, known := e.namespaces[name]; known && maps.Equal(old, set) {
		return
	}
	e.namespaces[name] = maps.Clone(set)
	for _, q := range e.queues {
		if q.selector != nil && q.selector.Matches(labels.Set(set)) {
			e.retryLater(q)
		}
	}
}

// SetAdmissionCheck adds or changes an AdmissionCheck; queues that name an inactive or missing one are inactive.
func (e *Engine) SetAdmissionCheck(name string, active bool) {
	e.changed()
	if old, known := e.checks[name]; known && old == active {
		return
	}
	e.checks[name] = active
	e.stale = true
	for _, q := range e.queues {
		if active && q.requires(name) {
			e.retryLater(q)
		}
	}
}

// SetCohort adds or changes a Cohort object. (Cohorts that are only named need not be set.)
func (e *Engine) SetCohort(name string, spec kueue.CohortSpec) {
	e.changed()
	if old, known := e.cohorts[name]; known && old.ParentName != spec.ParentName {
		e.touchedCohorts[string(old.ParentName)] = true
	}
	e.cohorts[name] = spec
	e.touchedCohorts[name] = true
	e.stale = true
	e.retryCohort(name)
}

// SetClusterQueue adds or changes a ClusterQueue. It fails if the namespace selector is malformed.
func (e *Engine) SetClusterQueue(name string, spec kueue.ClusterQueueSpec) error {
	selector, err := metav1.LabelSelectorAsSelector(spec.NamespaceSelector)
	if err != nil {
		return fmt.Errorf("ClusterQueue %s: spec.namespaceSelector: %w", name, err)
	}
	e.changed()
	q, known := e.queues[name]
	switch {
	case !known:
		q = newQueue(name)
		q.places, q.usages = e.places, e.usages
		e.queues[name] = q
		e.touchedQueues[name] = true
	case q.spec.CohortName != spec.CohortName:
		e.touchedCohorts[string(q.spec.CohortName)] = true
		e.touchedQueues[name] = true
	case !equality.Semantic.DeepEqual(q.spec.ResourceGroups, spec.ResourceGroups):
		e.touchedQueues[name] = true
	}
	specChanged := !known || !equality.Semantic.DeepEqual(q.spec, spec)
	restarted := q.stopped()
	q.configure(spec, selector)
	if !known {
		q.ordersByUsage = q.usageBased()
	}
	restarted = restarted && !q.stopped()
	e.stale = true
	if !known || restarted || q.stopped() {
		for _, w := range e.inClusterQueue(name) {
			e.suspects[w] = true
			switch {
			case !known:
				e.attach(w)
				e.enqueueNew(w)
			case restarted && w.Held == kueue.WorkloadEvictedByClusterQueueStopped:
				w.Held = ""
				e.enqueue(w)
			}
		}
	}
	if specChanged {
		e.retryLater(q)
	}
	return nil
}

// SetLocalQueue adds or changes a LocalQueue.
func (e *Engine) SetLocalQueue(name types.NamespacedName, spec kueue.LocalQueueSpec) {
	e.changed()
	l, known := e.localQueues[name]
	if known && reflect.DeepEqual(l.spec, spec) {
		return
	}
	moved := known && l.spec.ClusterQueue != spec.ClusterQueue
	l = &localQueue{spec}
	e.localQueues[name] = l
	e.usages.reweigh(name, spec)
	for _, w := range e.inLocalQueue(name) {
		e.suspects[w] = true
		if l.stopped() || moved {
			e.dequeue(w)
		}
		if !l.stopped() && w.Held == kueue.WorkloadEvictedByLocalQueueStopped {
			w.Held = ""
		}
		e.enqueueNew(w)
	}
}

// inLocalQueue lists the workloads that name a LocalQueue, oldest first.
func (e *Engine) inLocalQueue(name types.NamespacedName) []*workload {
	found := slices.Collect(maps.Keys(e.members[name]))
	slices.SortFunc(found, byAge)
	return found
}

// inClusterQueue lists the workloads whose LocalQueue leads to a ClusterQueue, or that hold quota of it, oldest first.
func (e *Engine) inClusterQueue(name string) []*workload {
	var found []*workload
	for _, w := range e.workloads {
		l := e.localQueues[w.localQueue()]
		if l != nil && string(l.spec.ClusterQueue) == name || w.Reservation != nil && string(w.Reservation.Admission.ClusterQueue) == name {
			found = append(found, w)
		}
	}
	slices.SortFunc(found, byAge)
	return found
}

// changed notes that something was reported: the next cycle may decide otherwise than the last.
func (e *Engine) changed() {
	if len(e.settled) > 0 {
		clear(e.settled)
	}
}
