package conformance

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/quota"
)

// The clock of a replay: it stands still while workloads are tried, and continues by this much before each step, and
// between the workloads of a submitMany.
const (
	betweenSteps   = 3 * time.Second
	betweenSubmits = time.Second
	// beforeReplacement is how long Kueue waits before it looks for another node.
	beforeReplacement = time.Second
)

// maxCycles is beyond what any recording needs to come to rest; recordings that never do are not made.
const maxCycles = 5_000

// RestlessError is the error for a step after which workloads evict each other without end.
type RestlessError struct {
	// Events are those that were seen, in their order, before the scenario was given up.
	Events []Event
}

func (*RestlessError) Error() string { return "it does not come to rest" }

// Circle is after how many events the same ones follow, all over the last two thirds of them, at least three times; 0: it is
// not known to go on without end.
func (r *RestlessError) Circle() int {
	last := r.Events[len(r.Events)/3:]
	for n := 1; n <= len(last)/3; n++ {
		if slices.Equal(last[n:], last[:len(last)-n]) {
			return n
		}
	}
	return 0
}

// Difference names events that happen in one of two steps without end, but not in the other; empty if there are none.
func (r *RestlessError) Difference(got *RestlessError) string {
	for _, one := range []*RestlessError{r, got} {
		if one.Circle() == 0 {
			return fmt.Sprintf("after %d events none repeat", len(one.Events))
		}
	}
	return differentEvents(r.Events, got.Events)
}

// Replay gives a scenario's steps to the engine and returns what came of each: the outcomes of all steps that could be
// done, and an error naming the first that could not. UIDs are taken from the scenario's outcomes.
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
		r.resume()
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

// Difference replays a scenario and reports where it first differs from the recording, in the steps that may be
// asserted; empty if nowhere.
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
	uids       func(workload string) string
	// order has the names of the workloads as they came.
	order   []string
	tracked map[string]*tracked
	events  []Event
	// backoff is how long workloads wait that were not ready in time, after the first time, and lateness how often they
	// may be late; nil: without end.
	backoff  time.Duration
	lateness *int32
}

// tracked is what the engine does not remember of a workload.
type tracked struct {
	spec      quota.Workload
	evictions map[string]int32
	why       *Why
	// late is how often it was evicted because its pods were not ready in time, and resumeAt when the backoff ends.
	late     int32
	resumeAt time.Time
	// deactivatedFor is why Kueue itself has deactivated it.
	deactivatedFor string
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
		uids: s.UIDs(), tracked: map[string]*tracked{},
	}
	if w := s.WaitForPodsReady; w != nil {
		r.backoff, r.lateness = time.Duration(w.BackoffBaseSeconds)*time.Second, w.BackoffLimitCount
	}
	for _, t := range s.Topologies {
		var levels []string
		for _, l := range t.Spec.Levels {
			levels = append(levels, l.NodeLabel)
		}
		r.engine.SetTopology(t.Name, levels)
	}
	for i := range s.Nodes {
		r.setNode(&s.Nodes[i])
	}
	for i := range s.Pods {
		r.setPod(&s.Pods[i])
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
	config := quota.Config{PriorityBoost: s.PriorityBoost}
	if w := s.WaitForPodsReady; w != nil {
		config.LateKeepPlace = w.Timestamp == "Creation"
	}
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

func (r *replay) name(workload string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: workload}
}

// rest runs cycles until nothing changes any more. Evicted workloads give their quota back before the next cycle, and
// inadmissible ones come back when all heads were tried.
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
	return &RestlessError{r.events}
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
		if d.Replaced != nil {
			r.events = append(r.events, Event{Event: "Finished", Workload: d.Replaced.Name, Reason: kueue.WorkloadSliceReplaced})
		}
	case quota.Evict:
		r.evicted(d.Workload.Name, Event{Reason: d.Reason}, t.deactivatedFor, d.Message)
		t.deactivatedFor = ""
	case quota.Preempt:
		t.why = &Why{d.Reason, d.Message}
		for _, target := range d.Targets {
			if !target.Ongoing {
				r.evicted(target.Workload.Name, Event{Reason: kueue.WorkloadEvictedByPreemption, PreemptionReason: target.Reason, By: d.Workload.Name}, "", target.Message)
			}
		}
	case quota.Wait:
		t.why = &Why{d.Reason, d.Message}
	}
}

// evicted records an eviction, which is counted with its underlying cause, and gives the quota back.
func (r *replay) evicted(name string, e Event, cause, message string) {
	t := r.tracked[name]
	t.evictions[e.Reason+cause]++
	e.Event, e.Workload = "Evicted", name
	if e.Reason == kueue.WorkloadDeactivated && cause != "" {
		e.Reason += "DueTo" + cause[1:]
	}
	r.events = append(r.events, e)
	t.why = &Why{kueue.WorkloadPending, message}
	r.engine.Release(r.name(name))
}
