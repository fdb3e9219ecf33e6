package simulator_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/trace"
)

// bench runs a scenario of the documented size, and one of a tenth of it, which shows how the cost grows.
// text has the size's divisor filled in.
func bench(b *testing.B, text func(part int) string) {
	for _, part := range []int{10, 1} {
		s, err := scenariofile.Parse("bench.yaml", []byte(text(part)))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := trace.Into(s); err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("part=%d", part), func(b *testing.B) {
			for b.Loop() {
				summary, err := simulator.Run(context.Background(), s, simulator.Options{})
				if err != nil {
					b.Fatal(err)
				}
				if summary.Finished != summary.Jobs {
					b.Fatalf("%d of %d jobs ended: %+v", summary.Finished, summary.Jobs, summary)
				}
				b.ReportMetric(float64(summary.Jobs), "jobs")
				b.ReportMetric(float64(summary.Preemptions+summary.Evictions), "evictions")
			}
		})
	}
}

// BenchmarkPreemption has 5,000 nodes, full of 20,000 pods of low priority, and 5,000 pods that preempt.
func BenchmarkPreemption(b *testing.B) {
	bench(b, func(part int) string {
		return fmt.Sprintf(`
name: preemption
nodes: [{name: n, count: %d, allocatable: {cpu: "4", memory: 32Gi}}]
priorityClasses: [{name: low, value: 1}, {name: high, value: 10}]
jobs:
  - {name: low, repeat: {count: %d, every: 1ms}, gang: {requests: {cpu: "1", memory: 4Gi}, priorityClass: low, runs: 1h}}
  - {name: high, submit: 30m, repeat: {count: %d, every: 1ms}, gang: {requests: {cpu: "1", memory: 4Gi}, priorityClass: high, runs: 10m}}
`, 5000/part, 20000/part, 5000/part)
	})
}

// BenchmarkPhilly has a trace of Philly's size: 117,325 jobs in 137 days on 309 nodes of eight GPUs.
func BenchmarkPhilly(b *testing.B) {
	bench(b, func(part int) string {
		return fmt.Sprintf(`
name: philly
priorityClasses: [{name: low, value: 1}, {name: high, value: 10}]
trace: {format: synthetic, limit: %d, high: high, low: low, checkpointEvery: 30m, restart: 1m, stops: 5s}
`, 117_325/part)
	})
}

// BenchmarkQueues submits 50,000 workloads in 50 minutes to 1,000 queues in 100 cohorts.
func BenchmarkQueues(b *testing.B) {
	bench(b, func(part int) string {
		queues := 1000 / part
		var text strings.Builder
		put := func(format string, args ...any) { fmt.Fprintf(&text, format+"\n", args...) }
		put(`name: queues`)
		put(`nodes: [{name: n, allocatable: {cpu: "1000000", pods: "1000000"}}]`)
		put(`resourceFlavors: [{name: spot}, {name: on-demand}]`)
		put(`workloadPriorityClasses: [{name: p0, value: 0}, {name: p1, value: 10}, {name: p2, value: 20}]`)
		put(`clusterQueues:`)
		for i := range queues {
			put(`  - {name: q%d, cohortName: team-%d, preemption: {withinClusterQueue: LowerPriority, reclaimWithinCohort: Any}, resourceGroups: [{coveredResources: [cpu], flavors: [`+
				`{name: spot, resources: [{name: cpu, nominalQuota: "5"}]}, {name: on-demand, resources: [{name: cpu, nominalQuota: "3"}]}]}]}`, i, i/10)
		}
		put(`localQueues:`)
		for i := range queues {
			put(`  - {name: q%d, clusterQueue: q%d}`, i, i)
		}
		put(`jobs:`)
		for i := range queues {
			put(`  - {name: j%d, repeat: {count: 50, every: 1m}, gang: {requests: {cpu: "%d"}, runs: %dm, stops: 1s, queue: q%d, workloadPriorityClass: p%d}}`, i, 1+i%3, 2+i%3, i, i%3)
		}
		return text.String()
	})
}
