//go:build unix

package nn_test

import (
	"syscall"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/gradient"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/kernel"
)

// cpuSeconds is the processor time of this process: what other processes on the machine do not change much.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}

func BenchmarkGradient(b *testing.B) {
	for _, set := range kernel.Available() {
		for _, records := range []int{10, 64} {
			b.Run(set.Name+"/batch="+map[int]string{10: "10", 64: "64"}[records], func(b *testing.B) {
				m := mnist()
				n := compile(b, m, set, 1, records)
				state, out := make([]float32, n.StateSize()), gradientBuffer(n)
				n.Init(state, 1)
				data := batch(m, records, 1)
				step, start := int64(0), cpuSeconds()
				for b.Loop() {
					if _, err := n.Gradient(state, data, records, step, 0, 1, out, nil); err != nil {
						b.Fatal(err)
					}
					if err := n.Apply(state, gradient.Sum{Dense: out[:n.TrainableSize()]}, nil, step); err != nil {
						b.Fatal(err)
					}
					step++
				}
				b.ReportMetric(float64(records)*float64(step)/(cpuSeconds()-start), "records/cpu-s")
			})
		}
	}
}
