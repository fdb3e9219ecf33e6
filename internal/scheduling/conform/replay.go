package conform

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/kueue"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduling/quota"
)

// The clock of a replay: it stands still while workloads are tried, and goes on by this much before each step, and between the workloads of a
// submitMany.
const (
	betweenSteps   = 3 * time.Second
	betweenSubmits = time.Second
)

// maxCycles is beyond what any recording needs to come to rest; recordings that never do are not made.
const maxCycles = 5_000

// ErrRestless is returned by Replay for a scenario in which workloads evict each other without end.
var ErrRestless = errors.New("it does not come to rest")

// Replay gives a scenario's steps to the engine and returns what came of each: the outcomes of all steps that could be done, and an error naming
// the first that could not. UIDs are taken from the scenario's outcomes.
func Replay(s *Scenario) ([]Outcome, error) { return replaySteps(s, len(s.Steps)) }

// replaySteps replays the first n steps.
func replaySteps(s *Scenario, n int) ([]Outcome, error) {
	r, err := newReplay(s)
	if err != nil {
		return nil, err
	}
	outcomes := make([]Outcome, 0, n)
	for i := range n {
		r.now = r.now.Add(betweenSteps)
		at := r.seconds(r.now)
		r.events = []Event{}
		refused := i < len(s.Outcomes) && s.Outcomes[i].Error != nil
		if !refused {
			if err := r.step(&s.Steps[i]); err != nil {
				return outcomes, fmt.Errorf("step %d (%s): %w", i, &s.Steps[i], err)
			}
		}
		o := r.outcome(at)
		if refused {
			o.Error = s.Outcomes[i].Error
		}
		outcomes = append(outcomes, o)
	}
	return outcomes, nil
}

// Difference replays a scenario and tells where it first differs from the recording, in the steps that may be asserted; empty if nowhere.
func Difference(s *Scenario) string {
	asserted := min(s.Asserted(), len(s.Outcomes))
	got, err := replaySteps(s, asserted)
	for i := range asserted {
		if i >= len(got) {
			return err.Error()
		}
		if d := s.Outcomes[i].Difference(&got[i]); d != "" {
			return fmt.Sprintf("step %d (%s): %s", i, &s.Steps[i], d)
		}
	}
	return ""
}

// namespace is where all workloads of a scenario live.
const namespace = "default"

// replay is a scenario under way.
type replay struct {
	engine     *quota.Engine
	start, now time.Time
	classes    map[string]int32
	queues     map[string]kueue.ClusterQueueSpec
	local      map[string]kueue.LocalQueueSpec
	uids       map[string]string
	// order has the names of the workloads as they came.
	order   []string
	tracked map[string]*tracked
	events  []Event
}

// tracked is what the engine does not remember of a workload.
type tracked struct {
	spec      quota.Workload
	evictions map[string]int32
	why       *Why
}

func newReplay(s *Scenario) (*replay, error) {
	if s.Format != Format {
		return nil, fmt.Errorf("format %d is not known, only %d is", s.Format, Format)
	}
	r := &replay{
		engine:  quota.New(configOf(s)),
		start:   time.Unix(0, 0).UTC(),
		now:     time.Unix(0, 0).UTC(),
		classes: map[string]int32{}, queues: map[string]kueue.ClusterQueueSpec{}, local: map[string]kueue.LocalQueueSpec{},
		uids: map[string]string{}, tracked: map[string]*tracked{},
	}
	for _, o := range s.Outcomes {
		for name, w := range o.Workloads {
			r.uids[name] = w.UID
		}
	}
	for _, f := range s.Flavors {
		r.engine.SetFlavor(f.Name, f.Spec)
	}
	for _, c := range s.PriorityClasses {
		r.classes[c.Name] = c.Value
	}
	for _, c := range s.Cohorts {
		r.engine.SetCohort(c.Name, c.Spec)
	}
	for _, q := range s.ClusterQueues {
		spec := *q.Spec.DeepCopy()
		if spec.NamespaceSelector == nil {
			spec.NamespaceSelector = &metav1.LabelSelector{}
		}
		if err := r.setQueue(q.Name, spec); err != nil {
			return nil, err
		}
	}
	for _, l := range s.LocalQueues {
		r.setLocal(l.Name, kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(l.ClusterQueue), StopPolicy: l.StopPolicy})
	}
	return r, r.rest()
}

func configOf(s *Scenario) quota.Config {
	var config quota.Config
	if s.FairSharing != nil {
		config.FairSharing = &quota.FairSharing{}
		for _, strategy := range s.FairSharing.PreemptionStrategies {
			config.FairSharing.Strategies = append(config.FairSharing.Strategies, quota.PreemptionStrategy(strategy))
		}
	}
	return config
}

func (r *replay) setQueue(name string, spec kueue.ClusterQueueSpec) error {
	r.queues[name] = spec
	return r.engine.SetClusterQueue(name, spec)
}

func (r *replay) setLocal(name string, spec kueue.LocalQueueSpec) {
	r.local[name] = spec
	r.engine.SetLocalQueue(types.NamespacedName{Namespace: namespace, Name: name}, spec)
}

func (r *replay) seconds(t time.Time) int64 { return int64(t.Sub(r.start) / time.Second) }

// step does what a step says, and lets the engine come to rest.
func (r *replay) step(s *Step) error {
	switch s.Op {
	case Submit:
		w, err := s.submitted()
		if err != nil {
			return err
		}
		if err := r.submit(&w); err != nil {
			return err
		}
	case SubmitMany:
		for i := range s.Workloads {
			if i > 0 {
				r.now = r.now.Add(betweenSubmits)
			}
			if err := r.submit(&s.Workloads[i]); err != nil {
				return err
			}
			if err := r.rest(); err != nil {
				return err
			}
		}
	case Finish, SetActive, SetPriority:
		if err := r.change(s); err != nil {
			return err
		}
	case SetQuota:
		if err := r.setQuota(s); err != nil {
			return err
		}
	case StopPolicy:
		if err := r.stop(s); err != nil {
			return err
		}
	default:
		return fmt.Errorf("the operation %q is not known", s.Op)
	}
	return r.rest()
}

func (r *replay) submit(w *Workload) error {
	if _, there := r.tracked[w.Name]; there {
		return fmt.Errorf("workload %s is there already", w.Name)
	}
	priority, known := r.classes[w.PriorityClass]
	if !known && w.PriorityClass != "" {
		return fmt.Errorf("workload %s: there is no priority class %q", w.Name, w.PriorityClass)
	}
	uid := r.uids[w.Name]
	if uid == "" {
		uid = w.Name
	}
	spec := quota.Workload{
		NamespacedName: r.name(w.Name), UID: uid, JobUID: w.Name,
		Created: r.now, Priority: priority, Queue: w.Queue,
	}
	for _, s := range w.sets() {
		set := quota.PodSet{
			Name: s.SetName, Count: s.Count, MinCount: s.MinCount, Requests: s.Requests, NodeSelector: s.NodeSelector, Tolerations: s.Tolerations,
		}
		if s.Affinity != nil && s.Affinity.NodeAffinity != nil {
			set.NodeAffinity = s.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		}
		spec.PodSets = append(spec.PodSets, set)
	}
	r.order = append(r.order, w.Name)
	r.tracked[w.Name] = &tracked{spec: spec, evictions: map[string]int32{}}
	r.engine.SetWorkload(spec)
	return nil
}

func (r *replay) name(workload string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: workload}
}

// change finishes a workload or changes its spec.
func (r *replay) change(s *Step) error {
	name, err := s.target()
	if err != nil {
		return err
	}
	t, known := r.tracked[name]
	if !known {
		return fmt.Errorf("there is no workload %q", name)
	}
	switch s.Op {
	case Finish:
		r.engine.Finish(r.name(name))
		r.events = append(r.events, Event{Event: "Finished", Workload: name, Reason: kueue.WorkloadFinishedReasonSucceeded})
		return nil
	case SetActive:
		var active bool
		if err := json.Unmarshal(s.Value, &active); err != nil {
			return fmt.Errorf("value: want true or false, got %s", s.Value)
		}
		t.spec.Inactive = !active
	case SetPriority:
		priority, known := r.classes[s.PriorityClass]
		if !known {
			return fmt.Errorf("there is no priority class %q", s.PriorityClass)
		}
		t.spec.Priority = priority
	}
	r.engine.SetWorkload(t.spec)
	return nil
}

func (r *replay) setQuota(s *Step) error {
	old, known := r.queues[s.ClusterQueue]
	if !known {
		return fmt.Errorf("there is no ClusterQueue %q", s.ClusterQueue)
	}
	spec := *old.DeepCopy()
	quotaOf := func() *kueue.ResourceQuota {
		for _, g := range spec.ResourceGroups {
			for _, f := range g.Flavors {
				for i := range f.Resources {
					if string(f.Name) == s.Flavor && string(f.Resources[i].Name) == s.Resource {
						return &f.Resources[i]
					}
				}
			}
		}
		return nil
	}()
	if quotaOf == nil {
		return fmt.Errorf("ClusterQueue %s has no quota for %s in flavor %s", s.ClusterQueue, s.Resource, s.Flavor)
	}
	for field, value := range s.Set {
		switch field {
		case "nominalQuota":
			if value == nil {
				value = &resource.Quantity{}
			}
			quotaOf.NominalQuota = *value
		case "borrowingLimit":
			quotaOf.BorrowingLimit = value
		case "lendingLimit":
			quotaOf.LendingLimit = value
		}
	}
	return r.setQueue(s.ClusterQueue, spec)
}

func (r *replay) stop(s *Step) error {
	var policy kueue.StopPolicy
	if err := json.Unmarshal(s.Value, &policy); err != nil {
		return fmt.Errorf("value: want None, Hold or HoldAndDrain, got %s", s.Value)
	}
	if s.LocalQueue != "" {
		spec, known := r.local[s.LocalQueue]
		if !known {
			return fmt.Errorf("there is no LocalQueue %q", s.LocalQueue)
		}
		spec.StopPolicy = &policy
		r.setLocal(s.LocalQueue, spec)
		return nil
	}
	old, known := r.queues[s.ClusterQueue]
	if !known {
		return fmt.Errorf("there is no ClusterQueue %q", s.ClusterQueue)
	}
	spec := *old.DeepCopy()
	spec.StopPolicy = &policy
	return r.setQueue(s.ClusterQueue, spec)
}

// rest runs cycles until nothing changes any more. Evicted workloads give their quota back before the next cycle, and parked ones come back when
// all heads were tried.
func (r *replay) rest() error {
	for range maxCycles {
		result := r.engine.Cycle(r.now)
		for i := range result.Decisions {
			r.carryOut(&result.Decisions[i])
		}
		if !result.Settled {
			continue
		}
		at, more := r.engine.RequeueAt()
		if !more {
			return nil
		}
		r.engine.Requeue(at)
	}
	return ErrRestless
}

// carryOut does what a controller would do with a decision, at once.
func (r *replay) carryOut(d *quota.Decision) {
	t := r.tracked[d.Workload.Name]
	switch d.Kind {
	case quota.Admit:
		t.why = nil
		if len(d.Checks) == 0 {
			r.events = append(r.events, Event{Event: "Admitted", Workload: d.Workload.Name})
		}
	case quota.Evict:
		r.evicted(d.Workload.Name, Event{Reason: d.Reason}, d.Message)
	case quota.Preempt:
		t.why = &Why{d.Reason, d.Message}
		for _, target := range d.Targets {
			if !target.Ongoing {
				r.evicted(target.Workload.Name, Event{Reason: kueue.WorkloadEvictedByPreemption, PreemptionReason: target.Reason, By: d.Workload.Name}, target.Message)
			}
		}
	case quota.Wait:
		t.why = &Why{d.Reason, d.Message}
	}
}

// evicted records an eviction and gives the quota back.
func (r *replay) evicted(name string, e Event, message string) {
	e.Event, e.Workload = "Evicted", name
	r.events = append(r.events, e)
	t := r.tracked[name]
	t.evictions[e.Reason]++
	t.why = &Why{kueue.WorkloadPending, message}
	r.engine.Release(r.name(name))
}

// outcome is how things stand.
func (r *replay) outcome(at int64) Outcome {
	o := Outcome{At: at, Settled: true, Events: r.events, Workloads: map[string]WorkloadState{}, ClusterQueues: map[string]QueueState{}}
	rank := map[string]int{"Evicted": 0, "Admitted": 1}
	slices.SortStableFunc(o.Events, func(a, b Event) int {
		ra, known := rank[a.Event]
		if !known {
			ra = len(rank)
		}
		rb, known := rank[b.Event]
		if !known {
			rb = len(rank)
		}
		if ra != rb {
			return ra - rb
		}
		return strings.Compare(a.Workload, b.Workload)
	})
	for name := range r.queues {
		o.ClusterQueues[name] = QueueState{Reserved: r.reserved(name), Pending: len(r.engine.Pending(name))}
	}
	for _, name := range r.order {
		state := r.state(name)
		o.Workloads[name] = state
		if state.State == "Admitted" {
			q := o.ClusterQueues[state.ClusterQueue]
			q.Admitted++
			o.ClusterQueues[state.ClusterQueue] = q
		}
	}
	return o
}

func (r *replay) reserved(queue string) map[string]map[string]Held {
	all := map[string]map[string]Held{}
	for _, u := range r.engine.Usage(queue) {
		if u.Reserved.IsZero() {
			continue
		}
		if all[u.Flavor] == nil {
			all[u.Flavor] = map[string]Held{}
		}
		all[u.Flavor][string(u.Resource)] = Held{Total: u.Reserved, Borrowed: u.Borrowed}
	}
	return all
}

func (r *replay) state(name string) WorkloadState {
	t := r.tracked[name]
	w, _ := r.engine.Workload(r.name(name))
	state := WorkloadState{State: "Pending", Priority: w.Priority, CreatedAt: r.seconds(w.Created), UID: w.UID}
	if len(t.evictions) > 0 {
		state.Evictions = maps.Clone(t.evictions)
	}
	switch {
	case w.Finished:
		state.State = "Finished"
	case w.Inactive:
		state.State, state.Why = "Deactivated", t.why
	case w.Reservation == nil:
		state.Why = t.why
	default:
		state.State = "QuotaReserved"
		if w.Reservation.Admitted {
			state.State = "Admitted"
		}
		at := r.seconds(w.Reservation.At)
		state.ReservedAt = &at
		state.ClusterQueue = string(w.Reservation.Admission.ClusterQueue)
		for _, a := range w.Reservation.Admission.PodSetAssignments {
			set := PodSetState{Name: string(a.Name), Count: number(a.Count), Flavors: map[string]string{}}
			for resource, flavor := range a.Flavors {
				set.Flavors[string(resource)] = string(flavor)
			}
			state.PodSets = append(state.PodSets, set)
		}
		if len(state.PodSets) == 1 {
			state.Count, state.Flavors, state.PodSets = &state.PodSets[0].Count, state.PodSets[0].Flavors, nil
		}
	}
	return state
}
