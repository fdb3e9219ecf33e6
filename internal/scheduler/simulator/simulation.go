package simulator

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/configuration"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/placement"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/quota"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"
)

// Options are how a scenario is run.
type Options struct {
	// Seed replaces the scenario's; nil keeps it.
	Seed *uint64
	// Log is given every event, in order; nil: none are made. An error ends the run.
	Log func(eventlog.Event) error
	// Progress is called now and then with the number of jobs that have ended, and the simulation's time.
	Progress func(ended, jobs int, at time.Duration)
}

// epoch is the date of a simulation's start.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// simulation is the state of a run.
type simulation struct {
	scenario   *scenariofile.Scenario
	now        Time
	eventQueue eventQueue
	rng        rng
	log        func(eventlog.Event) error
	failure    error // of the log

	resources       []corev1.ResourceName // cpu and memory, then the others by name; a node's and a pod's amounts are by their numbers
	podSlot         int
	weighed         int // the resource by which work is counted
	classes         map[string]*scenariofile.PriorityClass
	workloadClasses map[string]int32
	flavors         map[string]*scenariofile.ResourceFlavor

	jobs  []owner
	ended int

	requested map[corev1.ResourceName]bool // resources that some job asks for

	cluster        *placement.Cluster
	nodes          map[string]*node
	allNodes       []*node
	touched        []*node
	pods           []*pod
	byPlace        map[*placement.Pod]*pod
	shapes         map[string]*shape
	described      map[*scenariofile.Pod]string
	listed, opened []*shape
	ready          []*pod
	tries          int

	engine        *quota.Engine // nil without queues
	quotaStale    bool
	retryAt       Time
	workloads     map[types.NamespacedName]*workload
	workloadsMade int
	boosts        *boosts // nil where priorities do not depend on checkpoints

	scalers []*scaler
	stats   stats
}

// Run runs a scenario to its end.
func Run(ctx context.Context, sc *scenariofile.Scenario, o Options) (*Summary, error) {
	seed := sc.Seed
	if o.Seed != nil {
		seed = *o.Seed
	}
	s := newSimulation(sc, seed, o.Log)
	if err := s.run(ctx, o.Progress); err != nil {
		return nil, err
	}
	return s.summarize(seed), nil
}

func newSimulation(sc *scenariofile.Scenario, seed uint64, log func(eventlog.Event) error) *simulation {
	s := &simulation{
		scenario: sc, rng: newRNG(seed), log: log, retryAt: -1,
		classes: map[string]*scenariofile.PriorityClass{}, workloadClasses: map[string]int32{}, flavors: map[string]*scenariofile.ResourceFlavor{},
		requested: map[corev1.ResourceName]bool{}, nodes: map[string]*node{}, byPlace: map[*placement.Pod]*pod{},
		shapes: map[string]*shape{}, described: map[*scenariofile.Pod]string{}, workloads: map[types.NamespacedName]*workload{},
	}
	for i := range sc.PriorityClasses {
		s.classes[sc.PriorityClasses[i].Name] = &sc.PriorityClasses[i]
	}
	for _, class := range sc.WorkloadPriorityClasses {
		s.workloadClasses[class.Name] = class.Value
	}
	s.boosts = newBoosts(sc.CheckpointAge)
	s.nameResources()
	s.makeQueues()
	var there []*node
	for i := range sc.Nodes {
		there = append(there, s.makeNodes(&sc.Nodes[i])...)
	}
	s.makeCluster(there)
	for i, fault := range sc.Faults {
		if n := s.nodes[fault.Node]; n != nil {
			s.eventQueue.add(event{at: Time(fault.At), kind: nodeLost, subject: n.id, outage: Time(fault.Returns), version: -1})
		} else if fault.Job != "" {
			s.eventQueue.add(event{at: Time(fault.At), kind: podFails, subject: i})
		}
	}
	for i, stage := range sc.Stages {
		s.eventQueue.add(event{at: Time(stage.At), kind: stageBegins, subject: i})
	}
	for i := range sc.Jobs {
		s.makeJobs(&sc.Jobs[i])
	}
	return s
}

// nameResources numbers the resources of all nodes. What no node has, no pod gets.
func (s *simulation) nameResources() {
	total := map[corev1.ResourceName]int64{}
	for _, group := range s.scenario.Nodes {
		for name, amount := range group.Allocatable {
			total[name] += amountOf(name, amount)
		}
	}
	for _, job := range s.scenario.Jobs {
		for _, p := range job.Templates() {
			for name := range p.Requests {
				total[name] += 0
				s.requested[name] = true
			}
		}
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods} {
		delete(total, name)
	}
	s.resources = append([]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods}, slices.Sorted(maps.Keys(total))...)
	s.podSlot = 2
	for i, name := range s.resources[3:] {
		// Of accelerators, the most frequent one; they are what a cluster is bought for.
		if total[name] > 0 && (s.weighed == 0 || total[name] > total[s.resources[s.weighed]]) {
			s.weighed = i + 3
		}
	}
	s.stats.used, s.stats.there = make([]area, len(s.resources)), make([]area, len(s.resources))
	s.stats.taken, s.stats.capacity = make([]int64, len(s.resources)), make([]int64, len(s.resources))
}

func (s *simulation) makeQueues() {
	sc := s.scenario
	if len(sc.ClusterQueues) == 0 {
		return
	}
	var config quota.Config
	if a := sc.AdmissionFairSharing; a != nil {
		config.AdmissionFairSharing = &configuration.AdmissionFairSharing{
			UsageHalfLifeTime:     metav1.Duration{Duration: a.UsageHalfLifeTime.Std()},
			UsageSamplingInterval: metav1.Duration{Duration: a.UsageSamplingInterval.Std()},
			ResourceWeights:       map[corev1.ResourceName]float64{},
		}
		for name, weight := range a.ResourceWeights {
			config.AdmissionFairSharing.ResourceWeights[name] = weight.AsApproximateFloat64()
		}
	}
	if sc.FairSharing {
		config.FairSharing = &quota.FairSharing{}
	}
	s.engine = quota.New(config)
	s.engine.SetNamespace(scenariofile.Namespace, nil)
	for _, t := range sc.Topologies {
		levels := make([]string, len(t.Levels))
		for i, level := range t.Levels {
			levels[i] = level.NodeLabel
		}
		s.engine.SetTopology(t.Name, levels)
	}
	for i := range sc.ResourceFlavors {
		f := &sc.ResourceFlavors[i]
		s.flavors[f.Name] = f
		s.engine.SetFlavor(f.Name, f.ResourceFlavorSpec)
	}
	for _, c := range sc.Cohorts {
		s.engine.SetCohort(c.Name, c.CohortSpec)
	}
	for _, q := range sc.ClusterQueues {
		if err := s.engine.SetClusterQueue(q.Name, q.ClusterQueueSpec); err != nil {
			panic(fmt.Sprintf("simulator: a scenario that was checked: %v", err))
		}
	}
	for _, q := range sc.LocalQueues {
		s.engine.SetLocalQueue(types.NamespacedName{Namespace: scenariofile.Namespace, Name: q.Name}, q.LocalQueueSpec)
	}
}

// makeNodes makes the nodes of a group, and returns those that are there at the start.
func (s *simulation) makeNodes(group *scenariofile.NodeGroup) (there []*node) {
	count, most := 1, 1
	if group.Count != nil {
		count, most = *group.Count, *group.Count
	}
	if a := group.Autoscale; a != nil {
		most = a.Max
		s.scalers = append(s.scalers, &scaler{group: group})
	}
	for n := range most {
		made := s.newNode(group, n)
		if n < count {
			there = append(there, made)
		}
		if group.Autoscale != nil {
			scaler := s.scalers[len(s.scalers)-1]
			scaler.nodes = append(scaler.nodes, made)
		}
	}
	return there
}

// makeCluster begins with the nodes that are there.
func (s *simulation) makeCluster(there []*node) {
	objects := make([]*corev1.Node, len(there))
	for i, n := range there {
		objects[i] = n.object
	}
	s.cluster = placement.New(placement.Snapshot{Nodes: objects})
	s.cluster.TieBreak = rand.New(s.rng).IntN
	for _, n := range there {
		s.begins(n)
	}
}

// clock is a time as a date.
func (s *simulation) clock(t Time) time.Time { return epoch.Add(time.Duration(t) * time.Millisecond) }

// time is the inverse of clock.
func (s *simulation) time(t time.Time) Time { return Time(t.Sub(epoch).Milliseconds()) }

func (s *simulation) write(e eventlog.Event) {
	if s.failure == nil {
		e.Time = s.clock(s.now)
		s.failure = s.log(e)
	}
}

// class is the value of a priority class; 0 without one.
func (s *simulation) class(name string) int32 {
	if class := s.classes[name]; class != nil {
		return class.Value
	}
	return 0
}

// weightOf is what a pod holds of the resource by which work is counted.
func (s *simulation) weightOf(p *scenariofile.Pod) int64 {
	name := s.resources[s.weighed]
	return amountOf(name, p.Requests[name])
}

// progressEvery is how many moments pass between two looks at the context.
const progressEvery = 256

// run lets the events happen, all of a moment before anything is decided about it.
func (s *simulation) run(ctx context.Context, progress func(ended, jobs int, at time.Duration)) error {
	until := Time(s.scenario.Until)
	if until == 0 && s.scenario.Failures != nil { // there is always a next failure, also where no job can run any more
		until = Time(scenariofile.MaxDuration)
	}
	s.decide()
	for moments := 0; len(s.eventQueue.events) > 0 && s.ended < len(s.jobs); moments++ {
		if moments%progressEvery == 0 {
			if err := context.Cause(ctx); err != nil {
				return fmt.Errorf("simulation of %q, stopped at %s: %w", s.scenario.Name, time.Duration(s.now)*time.Millisecond, err)
			}
			if progress != nil {
				progress(s.ended, len(s.jobs), time.Duration(s.now)*time.Millisecond)
			}
		}
		at := s.next()
		if until > 0 && at > until {
			s.pass(until)
			break
		}
		s.pass(at)
		for len(s.eventQueue.events) > 0 && s.eventQueue.events[0].at == at && s.ended < len(s.jobs) {
			s.stats.events++
			s.happens(s.eventQueue.next())
		}
		s.decide()
		if s.failure != nil {
			return fmt.Errorf("simulation of %q: %w", s.scenario.Name, s.failure)
		}
	}
	for _, j := range s.jobs {
		j.unfinished()
	}
	return nil
}

// next is when something happens: the next event, or before it a look at what local queues have used.
func (s *simulation) next() Time {
	at := s.eventQueue.events[0].at
	if s.engine == nil {
		return at
	}
	if due, looks := s.engine.SampleAt(); looks && due.Before(s.clock(at)) {
		at, s.quotaStale = max(s.now, s.time(due)), true
	}
	return at
}

// pass lets time pass.
func (s *simulation) pass(to Time) {
	s.stats.pass(to - s.now)
	s.now = to
}

// decide lets the queues and the scheduler decide until they have nothing more to do.
func (s *simulation) decide() {
	for {
		acted := s.engine != nil && s.admit()
		acted = s.schedule() || acted
		if !acted {
			break
		}
	}
	s.scale()
}

func (s *simulation) happens(e event) {
	switch e.kind {
	case jobArrives:
		j := s.jobs[e.subject]
		s.stats.arrive(j.priority())
		j.arrives()
	case jobResizes, workerJoins, workDone:
		s.jobs[e.subject].timer(e)
	case podSeen:
		if p := s.pods[e.subject]; p != nil && p.version == e.version {
			s.enqueue(p)
		}
	case podStarts:
		if p := s.pods[e.subject]; p != nil && p.version == e.version {
			s.runs(p)
		}
	case podStops:
		if p := s.pods[e.subject]; p != nil && p.version == e.version {
			s.gone(p)
		}
	case nodeLost:
		n := s.allNodes[e.subject]
		if n.lost || e.version >= 0 && e.version != n.failures {
			return
		}
		s.leaves(n)
		s.stats.losses++
		if e.outage > 0 {
			s.eventQueue.add(event{at: s.now + e.outage, kind: nodeReturns, subject: n.id, version: n.failures})
		}
	case nodeReturns:
		if n := s.allNodes[e.subject]; n.lost && n.failures == e.version {
			s.joins(n)
		}
	case podFails:
		s.losesPod(&s.scenario.Faults[e.subject])
	case nodeReady:
		s.provisioned(s.allNodes[e.subject])
	case nodeIdle:
		s.idle(s.allNodes[e.subject], e.version)
	case stageBegins:
		if s.log != nil {
			stage := s.scenario.Stages[e.subject]
			s.write(eventlog.Event{Stage: &eventlog.Stage{Name: stage.Name, Text: stage.Text}})
		}
	case agesSeen:
		s.seeAges()
	case quotaRetries:
		if s.retryAt == e.at {
			s.retryAt = -1
		}
		s.quotaStale = true
	}
}
