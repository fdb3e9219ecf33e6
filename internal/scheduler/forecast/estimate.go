package forecast

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/starttime"
)

const (
	// maxEnds bounds the number of ends of running jobs that are considered and requested.
	maxEnds = 16
	// maxEstimateNodes bounds the size of clusters with estimates: each end that is considered takes a forecast.
	maxEstimateNodes = 1000
)

// end is the expected end of a running job or pod.
type end struct {
	// left is the u-quantile of the time until it.
	left func(u float64) time.Duration
	from string
	pods map[types.UID]bool
}

// estimate is the expected start of a job that waits for nodes: the first known end of a running job after which it
// starts, given that all earlier ends have happened too. nil if no known end helps, or if it is too late to look at
// all. Its interval is that of all ends being early, and of all being late.
func estimate(s *Snapshot, jobs []Job, number int, late func() bool) *Estimate {
	ends := endsOf(s)
	if len(ends) == 0 || len(s.Nodes) > maxEstimateNodes {
		return nil
	}
	start := func(u float64) (at time.Time, from string, known bool) {
		slices.SortStableFunc(ends, func(a, b end) int { return cmp.Compare(a.left(u), b.left(u)) })
		n := sort.Search(len(ends), func(n int) bool { return decide(without(s, ends[:n+1]), jobs, number, late).Outcome == Fits })
		if n == len(ends) {
			return at, "", false
		}
		return s.AsOf.Add(ends[n].left(u)), ends[n].from, true
	}
	const tail = (1 - starttime.Probability) / 2
	at, from, known := start(0.5)
	if !known {
		return nil
	}
	earliest, _, _ := start(tail)
	latest, _, _ := start(1 - tail)
	if late() {
		return nil
	}
	return &Estimate{At: at, Earliest: earliest, Latest: latest, From: from}
}

// endsOf returns the known ends of running jobs and pods, the earliest first: of training jobs by their progress since
// they began, and of pods with a deadline.
func endsOf(s *Snapshot) []end {
	var ends []end
	jobs := map[types.NamespacedName]*end{}
	began := map[types.NamespacedName]time.Time{}
	for _, pod := range s.Pods {
		if pod.Spec.NodeName == "" {
			continue
		}
		if o := ownerOf(pod); o.kind == aTrainingJob {
			if jobs[o.key()] == nil {
				jobs[o.key()] = &end{pods: map[types.UID]bool{}}
			}
			jobs[o.key()].pods[pod.UID] = true
			if !isWorker(pod) && pod.Status.StartTime != nil {
				began[o.key()] = pod.Status.StartTime.Time
			}
			continue
		}
		if limit := pod.Spec.ActiveDeadlineSeconds; limit != nil && pod.Status.StartTime != nil {
			left := max(0, pod.Status.StartTime.Add(time.Duration(*limit)*time.Second).Sub(s.AsOf))
			ends = append(ends, end{
				left: untilDeadline(left),
				from: fmt.Sprintf("pod %s/%s has its deadline then", pod.Namespace, pod.Name), pods: map[types.UID]bool{pod.UID: true},
			})
		}
	}
	for name, e := range jobs {
		left, known := s.progress(name, began[name])
		if !known {
			continue
		}
		status := s.Jobs[name].Status
		e.left = pace(left)
		e.from = fmt.Sprintf("job %s is at step %d of %d, and ends then at its pace so far", shortName(name.Namespace, name.Name), status.StepsDone, status.StepsTotal)
		ends = append(ends, *e)
	}
	slices.SortFunc(ends, func(a, b end) int { return cmp.Or(cmp.Compare(a.left(0.5), b.left(0.5)), cmp.Compare(a.from, b.from)) })
	return ends[:min(len(ends), maxEnds)]
}

// without is the cluster after some of the running jobs and pods have ended.
func without(s *Snapshot, ended []end) *Snapshot {
	gone := map[types.UID]bool{}
	for _, e := range ended {
		maps.Copy(gone, e.pods)
	}
	for _, pod := range s.Pods {
		if controller := metav1.GetControllerOfNoCopy(pod); gone[pod.UID] && controller != nil {
			gone[controller.UID] = true
		}
	}
	rest := *s
	rest.Pods = slices.DeleteFunc(slices.Clone(s.Pods), func(pod *corev1.Pod) bool { return gone[pod.UID] })
	if s.Queues != nil {
		queues := *s.Queues
		queues.Workloads = slices.DeleteFunc(slices.Clone(queues.Workloads), func(w *kueue.Workload) bool {
			return slices.ContainsFunc(w.OwnerReferences, func(o metav1.OwnerReference) bool { return gone[o.UID] })
		})
		rest.Queues = &queues
	}
	return &rest
}

// unknownEnds are running training jobs without a known status, for a forecast of a job that waits.
func unknownEnds(s *Snapshot) []types.NamespacedName {
	names := s.trainingJobsWith(func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" })
	names = slices.DeleteFunc(names, func(name types.NamespacedName) bool {
		_, known := s.Jobs[name]
		return known
	})
	return names[:min(len(names), maxEnds)]
}
