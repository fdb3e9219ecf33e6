package simulator_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/simulator"
	"github.com/elastic-training/terraform-provider-elastic/internal/simulator/scenario"
	"github.com/elastic-training/terraform-provider-elastic/internal/simulator/trace"
)

// bench runs a scenario of the size that is promised, and one of a tenth of it, so that the growth of the cost is seen. text has the size's
// divisor filled in.
func bench(b *testing.B, text func(part int) string) {
	for _, part := range []int{10, 1} {
		s, err := scenario.Parse("bench.yaml", []byte(text(part)))
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

// 5,000 nodes with 20,000 low pods that fill them, and 5,000 pods that preempt.
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

// A trace of Philly's size: 117,325 jobs in 137 days on 309 nodes of eight GPUs.
func BenchmarkPhilly(b *testing.B) {
	bench(b, func(part int) string {
		return fmt.Sprintf(`
name: philly
priorityClasses: [{name: low, value: 1}, {name: high, value: 10}]
trace: {format: synthetic, limit: %d, high: high, low: low, checkpointEvery: 30m, restart: 1m, stops: 5s}
`, 117_325/part)
	})
}
