package scenariofile

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Bounds of a scenario. They keep a file of a few bytes from requiring more memory than a machine has.
const (
	MaxNodes     = 20_000
	MaxJobs      = 1_000_000
	MaxPodsOfJob = 10_000
	MaxPods      = 2_000_000 // of all jobs, as first made
	maxSteps     = 1_000_000_000
	maxGrads     = 100_000
)

// checker finds what is wrong with a scenario beyond its form, and fills in what was left out.
type checker struct {
	*decoder
	s *Scenario

	classes, workloadClasses map[string]bool
	queues                   map[string]bool // LocalQueues
	levels                   map[string]bool // of topologies
	nodes                    map[string]bool
	jobs                     map[string]bool
	pods                     int
}

func check(d *decoder, s *Scenario) {
	c := &checker{decoder: d, s: s}
	c.classes = names(c, "priorityClasses", s.PriorityClasses, func(p PriorityClass) string { return p.Name })
	c.workloadClasses = names(c, "workloadPriorityClasses", s.WorkloadPriorityClasses, func(p WorkloadPriorityClass) string { return p.Name })
	for i, class := range s.PriorityClasses {
		if p := class.PreemptionPolicy; p != "" && p != corev1.PreemptLowerPriority && p != corev1.PreemptNever {
			c.problem(fmt.Sprintf("priorityClasses[%d].preemptionPolicy", i), "is %q; it is PreemptLowerPriority or Never", p)
		}
	}
	c.checkNodes()
	c.checkQueues()
	c.checkAge()
	c.checkUsage()
	if s.Trace != nil {
		c.checkTrace(s.Trace)
	}
	c.checkJobs()
	c.checkFaults()
}

// names checks that things have names, each its own, and returns them.
func names[T any](c *checker, path string, all []T, name func(T) string) map[string]bool {
	seen := map[string]bool{}
	for i, one := range all {
		c.name(fmt.Sprintf("%s[%d]", path, i), name(one), seen)
	}
	return seen
}

// name checks one name and adds it to those seen.
func (c *checker) name(path, name string, seen map[string]bool) {
	switch problems := validation.IsDNS1123Subdomain(name); {
	case name == "":
		c.problem(path, "has no name")
	case len(problems) > 0:
		c.problem(below(path, "name"), "is %q, which cannot be an object's name: %s", brief(name), strings.Join(problems, "; "))
	case seen[name]:
		c.problem(below(path, "name"), "is %q, as another one's", name)
	}
	seen[name] = true
}

// known checks a reference.
func (c *checker) known(path, name, what string, all map[string]bool) {
	if name != "" && !all[name] {
		c.problem(path, "is %q; there is no %s of that name", brief(name), what)
	}
}

func (c *checker) resources(path string, r Resources) {
	for name, amount := range r {
		at := below(path, string(name))
		if problems := validation.IsQualifiedName(string(name)); len(problems) > 0 {
			c.problem(at, "is no resource's name: %s", strings.Join(problems, "; "))
		}
		if amount.Sign() < 0 {
			c.problem(at, "is %s; an amount cannot be negative", amount.String())
		}
	}
}

func (c *checker) checkNodes() {
	if len(c.s.Nodes) == 0 && c.s.Trace == nil {
		c.problem("nodes", "is empty; there must be something to run on")
	}
	total := 0
	c.nodes = map[string]bool{}
	groups := map[string]bool{}
	for i := range c.s.Nodes {
		g := &c.s.Nodes[i]
		path := fmt.Sprintf("nodes[%d]", i)
		c.name(path, g.Name, groups)
		c.resources(below(path, "allocatable"), g.Allocatable)
		if len(g.Allocatable) == 0 {
			c.problem(path, "has nothing allocatable; say allocatable: {cpu: \"4\", memory: 16Gi}")
		}
		g.Complete()
		for j, taint := range g.Taints {
			if e := taint.Effect; taint.Key == "" || e != corev1.TaintEffectNoSchedule && e != corev1.TaintEffectNoExecute && e != corev1.TaintEffectPreferNoSchedule {
				c.problem(fmt.Sprintf("%s.taints[%d]", path, j), "needs a key, and the effect NoSchedule, PreferNoSchedule or NoExecute")
			}
		}
		count, most := 1, 1
		if g.Count != nil {
			count, most = *g.Count, *g.Count
		}
		if a := g.Autoscale; a != nil {
			most = max(count, a.Max)
			if g.Count == nil {
				g.Count = &a.Min
				count = a.Min
			}
			if a.Min < 0 || a.Max < 1 || a.Max < a.Min || count < a.Min || count > a.Max {
				c.problem(below(path, "autoscale"), "must have 0 ≤ min ≤ count ≤ max, and max at least 1")
			}
		}
		if count < 0 || most > MaxNodes {
			at := below(path, "count")
			if most > count {
				at = below(path, "autoscale.max")
			}
			c.problem(at, "is %d; a scenario has at most %d nodes", max(most, count), MaxNodes)
			return
		}
		if total += most; total > MaxNodes {
			c.problem(path, "makes more than %d nodes", MaxNodes)
			return
		}
		c.domains(path, g)
		for n := range most {
			name := g.NodeName(n)
			if c.nodes[name] {
				c.problem(below(path, "name"), "makes a second node %s", name)
			}
			c.nodes[name] = true
		}
	}
}

// domains checks the labels that divide a group's nodes.
func (c *checker) domains(path string, g *NodeGroup) {
	for label, values := range g.Domains {
		at := below(below(path, "domains"), label)
		if problems := validation.IsQualifiedName(label); len(problems) > 0 {
			c.problem(at, "is not the key of a node label: %s", strings.Join(problems, "; "))
		}
		if _, twice := g.Labels[label]; twice || label == corev1.LabelHostname {
			c.problem(at, "is a label that the nodes have already; leave it out of one of the two")
		}
		if len(values) == 0 || len(values) > max(g.most(), 1) {
			c.problem(at, "has %d values for %d nodes; give at least one, and at most one per node", len(values), g.most())
			delete(g.Domains, label)
		}
		for i, value := range values {
			if problems := validation.IsValidLabelValue(value); len(problems) > 0 || value == "" {
				c.problem(fmt.Sprintf("%s[%d]", at, i), "is %q, which cannot name a domain: it is not empty, and the value of a label", brief(value))
			}
		}
	}
}

// checkAge checks that the rule keeps the priorities of all classes apart, so that it never decides who may preempt whom.
func (c *checker) checkAge() {
	a := c.s.CheckpointAge
	if a == nil {
		return
	}
	a.Complete()
	if len(c.s.ClusterQueues) == 0 {
		c.problem("checkpointAge", "is about workloads in queues; there are no clusterQueues")
	}
	var priorities []int32
	for _, class := range c.s.WorkloadPriorityClasses {
		priorities = append(priorities, class.Value)
	}
	for _, class := range c.s.PriorityClasses { // of a workload without a class of its own
		priorities = append(priorities, class.Value)
	}
	if err := a.Rule().Check(priorities); err != nil {
		c.problem("checkpointAge", "cannot be used: %v", err)
	}
}

// checkUsage checks the settings of admission fair sharing. Kueue allows shorter intervals, which would take long.
func (c *checker) checkUsage() {
	a := c.s.AdmissionFairSharing
	if a == nil {
		return
	}
	c.resources("admissionFairSharing.resourceWeights", a.ResourceWeights)
	if a.UsageSamplingInterval.Std() < time.Second {
		c.problem("admissionFairSharing.usageSamplingInterval", "is less than a second")
	}
}

func (c *checker) checkPodFault(path string, f Fault) {
	at := slices.IndexFunc(c.s.Jobs, func(j Job) bool { return j.Name == f.Job && j.Repeat == nil })
	switch {
	case at < 0:
		c.problem(below(path, "job"), "%q is no job of this file that is submitted once", f.Job)
	case f.Master && c.s.Jobs[at].Elastic == nil:
		c.problem(below(path, "master"), "%q has no master: it is a gang", f.Job)
	}
}

func (c *checker) checkFaults() {
	for i, f := range c.s.Faults {
		path := fmt.Sprintf("faults[%d]", i)
		kinds := 0
		for _, is := range []bool{f.Node != "", f.Job != "", f.APIServer} {
			if is {
				kinds++
			}
		}
		switch {
		case kinds == 0:
			c.problem(path, "names no node and no job, and apiServer is not true")
		case kinds > 1:
			c.problem(path, "sets more than one of node, job and apiServer")
		case f.Node != "" && (c.s.Trace == nil || len(c.s.Nodes) > 0):
			c.known(below(path, "node"), f.Node, "node", c.nodes)
		case f.Job != "":
			c.checkPodFault(path, f)
		}
		if f.Returns > 0 && f.Node == "" {
			c.problem(below(path, "returns"), "belongs to a node; a pod is replaced by its job, and an API server starts again by itself")
		}
		if f.Job == "" && (f.Master || f.Kill) {
			c.problem(path, "master and kill belong to a job")
		}
	}
	if f := c.s.Failures; f != nil {
		if f.MeanTimeBetween == 0 {
			c.problem("failures.meanTimeBetween", "must be more than 0")
		}
		if f.Repair == 0 {
			c.problem("failures.repair", "must be more than 0; without nodes that come back nothing is left in the end")
		}
	}
}

func (c *checker) checkTrace(t *Trace) {
	if !slices.Contains(formats, t.Format) {
		c.problem("trace.format", "is %q; known are %v", brief(string(t.Format)), formats)
	}
	if t.Jobs == "" && t.Format != Synthetic {
		c.problem("trace.jobs", "is empty; name the file with the trace's jobs")
	}
	if t.Limit < 0 || t.Limit > MaxJobs {
		c.problem("trace.limit", "is %d; it is 0 (all) to %d", t.Limit, MaxJobs)
	}
	if t.CheckpointUpTo > 0 && (t.CheckpointEvery == 0 || t.CheckpointUpTo < t.CheckpointEvery) {
		c.problem("trace.checkpointUpTo", "is %s; it is left out, or at least checkpointEvery, which is more than 0", t.CheckpointUpTo)
	}
	if t.QueueOf != "" && t.QueueOf != "group" || t.QueueOf != "" && t.Queue == "" {
		c.problem("trace.queueOf", "is %q; it is left out or \"group\", and then queue is the beginning of the queues' names", brief(t.QueueOf))
	}
	if t.QueueOf == "" {
		c.known("trace.queue", t.Queue, "local queue", c.queues)
	}
	c.known("trace.high", t.High, "priority class", c.classes)
	c.known("trace.low", t.Low, "priority class", c.classes)
	c.known("trace.workloadHigh", t.WorkloadHigh, "workload priority class", c.workloadClasses)
	c.known("trace.workloadLow", t.WorkloadLow, "workload priority class", c.workloadClasses)
	if len(c.s.Nodes) == 0 && t.Nodes == "" && t.Format != Synthetic {
		c.problem("trace.nodes", "is empty; name the file with the trace's nodes, or list nodes in the scenario")
	}
}
