package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/trace"
)

// victimsScenario is a queue in which the important jobs of a trace preempt the others, whose checkpoints are ten minutes
// to an hour apart. It has one node: with many, which of them have room after an eviction changes all that follows, more
// than the choice of a victim does.
const victimsScenario = `
name: victims
nodes: [{name: all, count: 1, allocatable: {cpu: 1M, memory: 1P, %s, pods: 1M}}]
resourceFlavors: [{name: all}]
clusterQueues:
  - name: all
    resourceGroups: [{coveredResources: [%s], flavors: [{name: all, resources: [%s]}]}]
    preemption: {withinClusterQueue: LowerPriority}
localQueues: [{name: all, clusterQueue: all}]
workloadPriorityClasses: [{name: high, value: 1000}, {name: low, value: 100}]
checkpointAge: {every: 1m}
trace: {%s, queue: all, workloadHigh: high, workloadLow: low, checkpointEvery: 10m, checkpointUpTo: 1h, restart: 3m, stops: 10s}
`

// amount is of a resource.
type amount struct {
	resource string
	n        int64
}

// recording is a trace, the accelerators of the node that it runs on, a machine in its terms, and how many of these the
// queue has: so few that important jobs preempt others. The node has no other accelerators: the simulator counts work by
// those of which there are most.
type recording struct {
	what, trace, accelerators string
	machine                   []amount
	machines                  []int64
}

// recordingOf is one of Alibaba's in a file, or else one that is drawn.
func recordingOf(path string) recording {
	if path == "" {
		return recording{"drawn like Philly's", "format: synthetic, limit: 2000", "nvidia.com/gpu: 1M", []amount{{"nvidia.com/gpu", 8}}, []int64{80}}
	}
	return recording{
		"Alibaba's of 2023", fmt.Sprintf("format: alibaba-gpu-v2023, jobs: %q", path), "alibabacloud.com/gpu-milli: 1G",
		[]amount{{"cpu", 128}, {"memory", 768 << 30}, {"alibabacloud.com/gpu-milli", 8000}},
		[]int64{6, 7},
	}
}

// scenario is the trace in a queue of so many machines, with intervals and jobs of a seed.
func (r recording) scenario(machines int64, seed uint64) (*scenariofile.Scenario, error) {
	var names, quotas []string
	for _, a := range r.machine {
		names, quotas = append(names, a.resource), append(quotas, fmt.Sprintf(`{name: %s, nominalQuota: "%d"}`, a.resource, machines*a.n))
	}
	s, err := scenariofile.Parse("victims.yaml", fmt.Appendf(nil, victimsScenario, r.accelerators, strings.Join(names, ", "), strings.Join(quotas, ", "), r.trace))
	if err != nil {
		return nil, err
	}
	s.Seed = seed
	_, err = trace.Into(s)
	return s, err
}

// measureCheckpointAge simulates a trace with and without the rule of elastic-trainer checkpoint-age.
func measureCheckpointAge(ctx context.Context, o options) ([]figure, error) {
	var figures []figure
	r := recordingOf(o.trace)
	for _, machines := range r.machines {
		var off, on outcomes
		for seed := range uint64(o.rounds) {
			s, err := r.scenario(machines, seed)
			if err != nil {
				return nil, err
			}
			if err := on.run(ctx, s); err != nil {
				return nil, err
			}
			s.CheckpointAge = nil
			if err := off.run(ctx, s); err != nil {
				return nil, err
			}
		}
		figures = append(figures, compareVictims(fmt.Sprintf("trace %s, %d machines", r.what, machines), off, on)...)
	}
	return figures, nil
}

// outcomes are what runs of a scenario have shown.
type outcomes struct{ lost, evictions, mean, p95 []float64 }

func (o *outcomes) run(ctx context.Context, s *scenariofile.Scenario) error {
	summary, err := simulator.Run(ctx, s, simulator.Options{})
	if err != nil {
		return err
	}
	if summary.Lost == 0 {
		return fmt.Errorf("no work is lost in %s, so that there is nothing to compare", s.Name)
	}
	high := summary.Waits[0].Waiting
	if high.Mean.Std() == 0 || high.P95.Std() == 0 {
		return fmt.Errorf("high priority never waits in %s, so that there is nothing to compare", s.Name)
	}
	o.lost, o.evictions = append(o.lost, float64(summary.Lost)), append(o.evictions, float64(summary.Evictions))
	o.mean, o.p95 = append(o.mean, high.Mean.Std().Seconds()), append(o.p95, high.P95.Std().Seconds())
	return nil
}

// compareVictims has a line for the work lost, and two for the waiting of the important jobs.
func compareVictims(what string, off, on outcomes) []figure {
	seconds := func(on, off []float64) string {
		return fmt.Sprintf("without: %.3f s of %.3f s", medianOf(on), medianOf(off))
	}
	lost := fmt.Sprintf("without: %.0f s of %.0f s of %.0f and %.0f evictions", medianOf(on.lost), medianOf(off.lost), medianOf(on.evictions), medianOf(off.evictions))
	return []figure{
		ratios(what+": work lost with checkpoint age", "≤ 0.7", lost, over(on.lost, off.lost)),
		ratios("  waiting of high priority, mean", "≤ 1", seconds(on.mean, off.mean), over(on.mean, off.mean)),
		ratios("  waiting of high priority, p95", "≤ 1", seconds(on.p95, off.p95), over(on.p95, off.p95)),
	}
}

// over divides each by its counterpart.
func over(these, those []float64) []float64 {
	ratios := make([]float64, len(these))
	for i := range these {
		ratios[i] = these[i] / those[i]
	}
	return ratios
}
