package forecast_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/forecasttest"
)

const (
	gpu         = "nvidia.com/gpu"
	gpusPerNode = 8
)

// ofGPUs is a cluster of nodes with eight GPUs of which jobs of one to eight GPUs and of three priorities have 95 %.
func ofGPUs(seed uint64, nodes int) *forecast.Snapshot {
	random := rand.New(rand.NewPCG(seed, uint64(nodes))) //nolint:gosec // it has to be the same every time
	s := &forecast.Snapshot{AsOf: forecasttest.AsOf, PriorityClasses: []*schedulingv1.PriorityClass{forecasttest.Class("high", 1000)}}
	free := make([]int, nodes)
	for i := range nodes {
		s.Nodes = append(s.Nodes, forecasttest.Node(fmt.Sprintf("node-%d", i), "96"))
		s.Nodes[i].Status.Allocatable[gpu], free[i] = *resource.NewQuantity(gpusPerNode, resource.DecimalSI), gpusPerNode
	}
	for job, used := 0, 0; used < nodes*gpusPerNode*95/100; job++ {
		at, gpus := room(free, random.IntN(nodes), 1<<random.IntN(4))
		free[at], used = free[at]-gpus, used+gpus
		pod := forecasttest.Pod(fmt.Sprintf("pod-%d", job), s.Nodes[at].Name, strconv.Itoa(4*gpus), []int32{0, 100, 500}[random.IntN(3)], random.IntN(30_000))
		pod.Spec.Containers[0].Resources.Requests[gpu] = *resource.NewQuantity(int64(gpus), resource.DecimalSI)
		s.Pods = append(s.Pods, forecasttest.OfJob(pod, fmt.Sprintf("job-%d", job)))
	}
	return s
}

// room is the first node from one on with so many free GPUs or, where there is none, with one.
func room(free []int, from, gpus int) (node, found int) {
	for tried := range free {
		if at := (from + tried) % len(free); free[at] >= gpus {
			return at, gpus
		}
	}
	return room(free, from, 1)
}

// gang is a training job whose workers have four GPUs each.
func gang(b *testing.B, workers int) forecast.Job {
	b.Helper()
	d := forecasttest.TrainingJob("new", "high", "high", workers, workers)
	d.Workers.Resources = &corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"cpu": resource.MustParse("16"), gpu: resource.MustParse("4")}, Limits: corev1.ResourceList{gpu: resource.MustParse("4")},
	}
	job, err := forecast.OfTrainingJob(d)
	if err != nil {
		b.Fatal(err)
	}
	return job
}

// BenchmarkCertainty forecasts training jobs in clusters that are nearly full, once for each seed, and reports the share of
// outcomes and of evictions that are certain, and the median and the longest time.
func BenchmarkCertainty(b *testing.B) {
	const seeds = 20
	for _, nodes := range []int{8, 16, 32, 64, 128, 512, 2048, 5000} {
		for _, workers := range []int{1, 4, 8, 16, 64} {
			b.Run(fmt.Sprintf("%d_nodes_%d_workers", nodes, workers), func(b *testing.B) {
				job := gang(b, workers)
				outcomes, evictions := 0.0, 0.0
				var took []float64
				for seed := range uint64(seeds) {
					claims, seconds := certainty(b.Context(), ofGPUs(seed, nodes), job)
					outcomes, evictions, took = outcomes+share(claims.Outcome), evictions+share(claims.Evictions.Certainty), append(took, seconds)
				}
				slices.Sort(took)
				b.ReportMetric(outcomes/seeds, "outcomes")
				b.ReportMetric(evictions/seeds, "evictions")
				b.ReportMetric(took[seeds/2], "median-s")
				b.ReportMetric(took[seeds-1], "longest-s")
			})
		}
	}
}

// certainty is what is certain of a forecast within the provider's default time, and how long it took.
func certainty(ctx context.Context, s *forecast.Snapshot, job forecast.Job) (forecast.Claims, float64) {
	const limit = 10 * time.Second
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	began := time.Now()
	return forecast.Run(ctx, s, nil, job).Claims(), time.Since(began).Seconds()
}

func share(c forecast.Certainty) float64 {
	if c.Certain {
		return 1
	}
	return 0
}

// BenchmarkVolumes forecasts a gang beside pods that all have an inline volume of a CSI driver, and beside the same without.
func BenchmarkVolumes(b *testing.B) {
	for name, volumes := range map[string][]corev1.Volume{
		"inline":  {{Name: "v", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "csi.example.com"}}}},
		"without": nil,
	} {
		s, job := ofGPUs(1, 32), gang(b, 4)
		for _, pod := range s.Pods {
			pod.Spec.Volumes = volumes
		}
		for _, pod := range job.Stages[0][0].Pods {
			pod.Spec.Volumes = volumes
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				forecast.Run(b.Context(), s, nil, job)
			}
		})
	}
}
