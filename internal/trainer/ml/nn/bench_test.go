//go:build unix

package nn_test

import (
	"fmt"
	"slices"
	"syscall"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/gradient"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
)

// cpuSeconds is the processor time of this process: what other processes on the machine do not change much.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}

// BenchmarkStep is one training step, forward, backward and update, on one thread.
func BenchmarkStep(b *testing.B) {
	withOptimizer := func(o graph.Optimizer) *graph.Model {
		m := mnist()
		m.Optimizer = o
		return m
	}
	for _, network := range []struct {
		name string
		m    *graph.Model
	}{
		{"mnist", mnist()},
		{"mnist, momentum", withOptimizer(graph.Optimizer{Kind: graph.SGD, LearningRate: 0.01, Momentum: 0.9})},
		{"mnist, adam", withOptimizer(graph.Optimizer{Kind: graph.Adam, LearningRate: 0.001, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-7})},
		{"cifar10", cifar10()},
		{"resnet20", resnet20()},
	} {
		for _, set := range kernel.Available() {
			for _, records := range []int{10, 64} {
				b.Run(fmt.Sprintf("%s/%s/batch=%d", network.name, set.Name, records), func(b *testing.B) {
					benchmarkStep(b, network.m, set, records)
				})
			}
		}
	}
}

// BenchmarkTable is one step with an embedding table, whose size matters to no optimizer but those that walk it.
func BenchmarkTable(b *testing.B) {
	for _, kind := range []graph.OptimizerKind{graph.SGD, graph.AdaGrad, graph.Adam} {
		o := testOptimizers[slices.IndexFunc(testOptimizers, func(o graph.Optimizer) bool { return o.Kind == kind })]
		for _, rows := range []int{10_000, 1_000_000} {
			b.Run(fmt.Sprintf("%s/%d rows", o.Kind, rows), func(b *testing.B) {
				m := model(4).dense(16).relu().ids(10).embedding(rows, 16).flatten().merge(graph.Concatenate, 2).dense(64).relu().dense(1).loss(graph.SigmoidCrossEntropy).build()
				m.Optimizer = o
				benchmarkStep(b, m, kernel.Available()[0], 64)
			})
		}
	}
}

func benchmarkStep(b *testing.B, m *graph.Model, set kernel.Set, records int) {
	b.Helper()
	n := compile(b, m, set, 1, records)
	state, out := make([]float32, n.StateSize()), gradientBuffer(n)
	sum := gradient.Sum{Dense: out[:n.TrainableSize()], Rows: rowsBuffer(n)}
	n.Init(state, 1)
	data := batch(m, records, 1)
	step := int64(0)
	start := cpuSeconds()
	for b.Loop() {
		if _, err := n.Gradient(state, data, records, step, 0, 1, out, sum.Rows); err != nil {
			b.Fatal(err)
		}
		if err := n.Apply(state, sum, nil, step); err != nil {
			b.Fatal(err)
		}
		step++
	}
	b.ReportMetric(float64(records)*float64(step)/(cpuSeconds()-start), "records/cpu-s")
}
