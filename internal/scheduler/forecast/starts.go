package forecast

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/quota"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/starttime"
)

const (
	// maxEstimateWorkloads bounds the number of workloads of the queues whose future is followed.
	maxEstimateWorkloads = 2000
	// paceDeviation is the standard deviation of the time that a training job still takes, relative to that at its
	// pace so far.
	paceDeviation = 0.15
)

// admissionEstimate is when the queues admit what waits of a job, from the run times of workloads that have ended and
// from the progress and deadlines of those that run. nil if nothing of it waits in a queue, or no interval is known.
func (f *forecast) admissionEstimate(number int) *Estimate {
	q := f.queues
	if q == nil || q.undecided == nil {
		return nil
	}
	var latest *Estimate
	for name, planned := range q.planned {
		if _, pending := q.undecided.Position(name); planned.number != number || !pending {
			continue
		}
		e := f.workloadEstimate(name)
		if e == nil {
			return nil
		}
		if latest == nil || e.At.After(latest.At) {
			latest = e
		}
	}
	return latest
}

// workloadEstimate is when the queues admit one workload that waits.
func (f *forecast) workloadEstimate(target types.NamespacedName) *Estimate {
	q, s := f.queues, f.snapshot
	clusterQueue := q.undecided.Why(target).ClusterQueue
	h := newHistory(f, clusterQueue)
	if h == nil {
		return nil
	}
	i, known := starttime.Of(h.queues, target)
	if !known {
		return nil
	}
	return &Estimate{
		At: s.AsOf.Add(i.Median), Earliest: s.AsOf.Add(i.Earliest), Latest: s.AsOf.Add(i.Latest),
		From: "from " + join(h.sources()),
	}
}

// history is what the Workloads of a ClusterQueue and of its cohorts tell about the future.
type history struct {
	f      *forecast
	queues starttime.Queues
	batch  map[types.UID]*batchv1.Job
	jobs   map[types.UID]owner // training jobs by their pods
	began  map[types.NamespacedName]time.Time
	used   map[string]bool
}

// newHistory looks at the Workloads that share quota with those of a ClusterQueue; nil if they are too many.
func newHistory(f *forecast, clusterQueue string) *history {
	q, s := f.queues, f.snapshot
	h := &history{
		f: f, batch: map[types.UID]*batchv1.Job{}, jobs: map[types.UID]owner{}, began: map[types.NamespacedName]time.Time{}, used: map[string]bool{},
		queues: starttime.Queues{
			Now: s.AsOf, Running: map[types.NamespacedName]starttime.Run{}, Waiting: map[types.NamespacedName]starttime.Class{},
		},
	}
	for _, job := range s.BatchJobs {
		h.batch[job.UID] = job
	}
	for _, pod := range s.Pods {
		if o := ownerOf(pod); o.kind == aTrainingJob {
			h.jobs[pod.UID] = o
			if !isWorker(pod) && pod.Status.StartTime != nil {
				h.began[o.key()] = pod.Status.StartTime.Time
			}
		}
	}
	var ended []*kueue.Workload
	shares := f.sharing(clusterQueue)
	for _, w := range s.Queues.Workloads {
		if !shares[types.NamespacedName{Namespace: w.Namespace, Name: string(w.Spec.QueueName)}] {
			continue
		}
		if meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadFinished) {
			ended = append(ended, w)
		} else if q.known[types.NamespacedName{Namespace: w.Namespace, Name: w.Name}] != nil {
			h.add(w)
		}
	}
	if len(h.queues.Running)+len(h.queues.Waiting) > maxEstimateWorkloads {
		return nil
	}
	for name, planned := range q.planned {
		class := starttime.Class{Namespace: planned.job.Namespace, Queue: planned.part.Queue, Kind: aJob}
		if podsAreWorkloads[planned.job.Noun] {
			class.Kind = "Pod"
		}
		if _, pending := q.undecided.Position(name); pending {
			h.queues.Waiting[name] = class
		} else {
			h.queues.Running[name] = starttime.Run{Class: class}
		}
	}
	h.addEnded(ended)
	h.queues.Engine = q.undecided.CloneTree(clusterQueue)
	return h
}

// sharing are the LocalQueues whose workloads may use the quota of a ClusterQueue: its own, and those of all cohorts,
// which may be one tree.
func (f *forecast) sharing(clusterQueue string) map[types.NamespacedName]bool {
	inCohort := map[string]bool{}
	for _, q := range f.snapshot.Queues.ClusterQueues {
		inCohort[q.Name] = q.Spec.CohortName != ""
	}
	shares := map[types.NamespacedName]bool{}
	for _, local := range f.snapshot.Queues.LocalQueues {
		of := string(local.Spec.ClusterQueue)
		shares[types.NamespacedName{Namespace: local.Namespace, Name: local.Name}] = of == clusterQueue || inCohort[of] && inCohort[clusterQueue]
	}
	return shares
}

func classOf(w *kueue.Workload) starttime.Class {
	c := starttime.Class{Namespace: w.Namespace, Queue: string(w.Spec.QueueName)}
	if owner := metav1.GetControllerOfNoCopy(w); owner != nil {
		c.Kind = owner.Kind
	} else if len(w.OwnerReferences) > 0 {
		c.Kind = w.OwnerReferences[0].Kind
	}
	return c
}

// add takes a Workload that has not ended.
func (h *history) add(w *kueue.Workload) {
	name, class := types.NamespacedName{Namespace: w.Namespace, Name: w.Name}, classOf(w)
	if _, pending := h.f.queues.undecided.Position(name); pending || w.Status.Admission == nil {
		h.queues.Waiting[name] = class
		return
	}
	admitted := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadAdmitted)
	run := starttime.Run{Class: class}
	if admitted != nil && admitted.Status == metav1.ConditionTrue {
		run.Ran = max(0, h.queues.Now.Sub(admitted.LastTransitionTime.Time))
		h.queues.Times.Runs(class, run.Ran)
	}
	h.follow(w, &run)
	h.queues.Running[name] = run
}

// addEnded takes the Workloads that have ended. As many will arrive as have arrived since the oldest of them.
func (h *history) addEnded(ended []*kueue.Workload) {
	since := h.queues.Now
	for _, w := range ended {
		finished := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadFinished)
		if admitted := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadAdmitted); admitted != nil && admitted.Status == metav1.ConditionTrue {
			h.queues.Times.Ended(classOf(w), finished.LastTransitionTime.Sub(admitted.LastTransitionTime.Time))
		}
		if w.CreationTimestamp.Time.Before(since) {
			since = w.CreationTimestamp.Time
		}
	}
	h.queues.Window = h.queues.Now.Sub(since)
	shares := slices.Clone(ended)
	for _, w := range h.f.queues.known {
		name := types.NamespacedName{Namespace: w.Namespace, Name: w.Name}
		_, runs := h.queues.Running[name]
		if _, waits := h.queues.Waiting[name]; (runs || waits) && !w.CreationTimestamp.Time.Before(since) {
			shares = append(shares, w)
		}
	}
	slices.SortFunc(shares, func(a, b *kueue.Workload) int { return cmp.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name) })
	for _, w := range shares {
		arrival := quota.FromObject(w)
		arrival.Finished, arrival.UnhealthyNodes = false, nil
		for i := range arrival.PodSets {
			arrival.PodSets[i].Reclaimable = 0
		}
		h.queues.Arrivals = append(h.queues.Arrivals, starttime.Arrival{Workload: arrival, Class: classOf(w)})
	}
}

// follow takes what the progress or the deadline of a Workload's owner says about its end.
func (h *history) follow(w *kueue.Workload, run *starttime.Run) {
	var limit time.Duration
	if seconds := w.Spec.MaximumExecutionTimeSeconds; seconds != nil {
		limit = time.Duration(*seconds) * time.Second
	}
	for _, reference := range w.OwnerReferences {
		if o, ours := h.jobs[reference.UID]; ours {
			if took, ends := h.f.snapshot.progress(o.key(), h.began[o.key()]); ends {
				run.Left, run.Together = pace(took), o.String()
				h.used[fmt.Sprintf("the progress of %s", o)] = true
				return
			}
		}
		if job := h.batch[reference.UID]; job != nil && job.Spec.ActiveDeadlineSeconds != nil {
			limit = time.Duration(*job.Spec.ActiveDeadlineSeconds) * time.Second
		}
	}
	if limit == 0 {
		return
	}
	left, class, ran, times := max(0, limit-run.Ran), run.Class, run.Ran, &h.queues.Times
	h.used["the deadlines of running workloads"] = true
	run.Left = func(u float64) time.Duration {
		if times.Known(class) {
			return min(left, times.Left(class, ran, u))
		}
		return untilDeadline(left)(u)
	}
}

// progress is how much longer a training job takes at its pace since its master began. A restarted master has not done
// all of the steps itself.
func (s *Snapshot) progress(name types.NamespacedName, began time.Time) (left time.Duration, known bool) {
	status := s.Jobs[name].Status
	if began.IsZero() || status.Phase != trainingjob.PhaseRunning || status.Generation > 1 || status.StepsDone == 0 || !began.Before(s.AsOf) {
		return 0, false
	}
	return s.AsOf.Sub(began) / time.Duration(status.StepsDone) * time.Duration(status.StepsTotal-status.StepsDone), true
}

// pace is the u-quantile of the time that a job still takes, of which its pace so far says how long it would be.
func pace(left time.Duration) func(u float64) time.Duration {
	return func(u float64) time.Duration {
		return time.Duration(float64(left) * max(0, 1+paceDeviation*math.Sqrt2*math.Erfinv(2*u-1)))
	}
}

// untilDeadline is the u-quantile of the time that something still takes of which only the deadline is known: one half
// end at the deadline, the others at any time before.
func untilDeadline(left time.Duration) func(u float64) time.Duration {
	return func(u float64) time.Duration { return time.Duration(float64(left) * min(1, 2*u)) }
}

// sources are what the estimate is made of.
func (h *history) sources() (texts []string) {
	classes := map[starttime.Class]bool{}
	for _, run := range h.queues.Running {
		classes[run.Class] = true
	}
	for _, class := range h.queues.Waiting {
		classes[class] = true
	}
	for class := range classes {
		if h.queues.Times.Known(class) {
			texts = append(texts, fmt.Sprintf("the run times of %d finished %s", h.queues.Times.Count(class), class))
		}
	}
	for text := range h.used {
		texts = append(texts, text)
	}
	slices.Sort(texts)
	const most = 3
	if len(texts) > most {
		texts = append(texts[:most-1:most-1], fmt.Sprintf("%d others", len(texts)-most+1))
	}
	return texts
}
