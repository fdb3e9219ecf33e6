package placement

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// large is a cluster of so many nodes in ten zones, each with so many pods that run.
func large(nodes, podsEach int) Snapshot {
	var s Snapshot
	for i := range nodes {
		n := machine(fmt.Sprintf("node-%d", i), amounts("cpu", "8", "memory", "32Gi"))
		n.Labels[corev1.LabelTopologyZone] = fmt.Sprintf("zone-%d", i%10)
		s.Nodes = append(s.Nodes, n)
		for j := range podsEach {
			p := prioritised(fmt.Sprintf("low-%d-%d", i, j), int32(j%3), amounts("cpu", "700m", "memory", "2Gi"))
			p.Labels = map[string]string{"app": fmt.Sprintf("app-%d", i%100), "index": fmt.Sprint(i*podsEach + j)}
			p.Spec.NodeName = n.Name
			p.Status.Phase = corev1.PodRunning
			p.Status.StartTime = &metav1.Time{Time: began.Add(time.Duration(i*podsEach+j) * time.Second)}
			s.Pods = append(s.Pods, p)
		}
	}
	return s
}

// BenchmarkOneAnswer builds a cluster from a snapshot and schedules one pod that must preempt: all that a forecast
// needs.
func BenchmarkOneAnswer(b *testing.B) {
	for _, nodes := range []int{500, 5000} {
		b.Run(fmt.Sprintf("%dnodes", nodes), func(b *testing.B) {
			snapshot := large(nodes, 10)
			high := prioritised("high", 1000, amounts("cpu", "3", "memory", "8Gi"))
			b.ReportAllocs()
			for b.Loop() {
				c := New(snapshot)
				p := c.Alternatives(c.Pod(high))
				if p.Kind != Preempts {
					b.Fatal(p.Kind)
				}
				c.Explain(c.Pod(high))
			}
			var memory runtime.MemStats
			runtime.ReadMemStats(&memory)
			b.ReportMetric(float64(memory.HeapSys)/(1<<20), "MiB-heap")
		})
	}
}

// BenchmarkPreemptors schedules pods of high priority in a cluster that is full of pods of low priority: four on every
// node, of which each must evict one.
func BenchmarkPreemptors(b *testing.B) {
	for _, nodes := range []int{500, 5000} {
		b.Run(fmt.Sprintf("%dnodes", nodes), func(b *testing.B) {
			for b.Loop() {
				c := New(Snapshot{Nodes: large(nodes, 0).Nodes})
				low := c.Pod(prioritised("low", 0, amounts("cpu", "2", "memory", "2Gi")))
				for i := range 4 * nodes {
					pod := *low
					pod.Name, pod.Started = fmt.Sprint("low-", i), began.Add(time.Duration(i)*time.Second)
					d := c.Schedule(&pod)
					if d.Kind != Bound {
						b.Fatal(i, d.Kind)
					}
					c.AddPod(&pod, d.Node)
				}
				high := c.Pod(prioritised("high", 1000, amounts("cpu", "2", "memory", "2Gi")))
				for i := range nodes {
					pod := *high
					pod.Name = fmt.Sprint("high-", i)
					d := c.Schedule(&pod)
					if d.Kind != Preempts || len(d.Victims) != 1 {
						b.Fatal(i, d)
					}
					c.Preempt(&pod, d.Node, d.Victims)
					c.RemovePod(d.Victims[0], d.Node)
					if d = c.Schedule(&pod); d.Kind != Bound {
						b.Fatal(i, d.Kind)
					}
					c.AddPod(&pod, d.Node)
				}
			}
		})
	}
}
