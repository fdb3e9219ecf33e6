package scenariofile

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/checkpointage"
)

// Defaults, which are those of Kubernetes.
const (
	defaultGrace       = Duration(30_000)
	defaultPodsPerNode = 110
)

// Complete sets the defaults of a job.
func (j *Job) Complete() {
	if g := j.Gang; g != nil {
		g.Pods = cmp.Or(g.Pods, 1)
		g.complete()
		if g.Stops == nil {
			g.Stops = g.TerminationGracePeriod
		}
	}
	if e := j.Elastic; e != nil {
		w := &e.Workers
		w.Min = cmp.Or(w.Min, 1)
		w.Max = cmp.Or(w.Max, w.Min)
		for _, p := range []*Pod{&e.Master, &w.Pod} {
			p.complete()
			if p.Stops == nil {
				p.Stops = new(Duration)
			}
		}
	}
}

func (p *Pod) complete() {
	if p.TerminationGracePeriod == nil {
		p.TerminationGracePeriod = new(defaultGrace)
	}
}

// Complete sets the defaults of the rule.
func (a *CheckpointAge) Complete() {
	of := func(d time.Duration) Duration { return Duration(d.Milliseconds()) }
	rule := checkpointage.Default
	a.Step, a.Max = cmp.Or(a.Step, of(rule.Step)), cmp.Or(a.Max, rule.Max)
	a.Every = cmp.Or(a.Every, of(checkpointage.DefaultEvery))
	if a.Hold == nil {
		a.Hold = new(of(rule.Hold))
	}
}

// Rule is the rule, with its defaults set.
func (a *CheckpointAge) Rule() checkpointage.Rule {
	return checkpointage.Rule{Step: a.Step.Std(), Max: a.Max, Hold: a.Hold.Std()}
}

// Complete sets the defaults of a node group.
func (g *NodeGroup) Complete() {
	if _, given := g.Allocatable[corev1.ResourcePods]; !given && g.Allocatable != nil {
		g.Allocatable[corev1.ResourcePods] = *resource.NewQuantity(defaultPodsPerNode, resource.DecimalSI)
	}
}

// LevelsOf are the levels above the host that divide a node with these labels, from the widest: of the topology that divides
// it most finely.
func (s *Scenario) LevelsOf(labels map[string]string) []string {
	var finest []string
	for _, t := range s.Topologies {
		var all []string
		for _, level := range t.Levels {
			if labels[level.NodeLabel] != "" && level.NodeLabel != corev1.LabelHostname {
				all = append(all, level.NodeLabel)
			}
		}
		if len(all) > len(finest) {
			finest = all
		}
	}
	return finest
}

// Domain is the value of a label of Domains on the group's n-th node, from 0.
func (g NodeGroup) Domain(label string, n int) string {
	values := g.Domains[label]
	return values[n*len(values)/g.most()]
}

// most is the greatest number of nodes that the group has.
func (g NodeGroup) most() int {
	switch {
	case g.Autoscale != nil:
		return g.Autoscale.Max
	case g.Count != nil:
		return *g.Count
	}
	return 1
}

// NodeName is the name of the group's n-th node, from 0.
func (g NodeGroup) NodeName(n int) string {
	if g.Count == nil {
		return g.Name
	}
	return fmt.Sprintf("%s-%d", g.Name, n)
}

// JobName is the name of the n-th of a repeated job, from 0.
func (j Job) JobName(n int) string {
	if j.Repeat == nil {
		return j.Name
	}
	return fmt.Sprintf("%s-%d", j.Name, n)
}

// Templates are what the job's pods are made from.
func (j Job) Templates() []*Pod {
	if j.Gang != nil {
		return []*Pod{&j.Gang.Pod}
	}
	return []*Pod{&j.Elastic.Master, &j.Elastic.Workers.Pod}
}
