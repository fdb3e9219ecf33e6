package forecast

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	podconstants "sigs.k8s.io/kueue/pkg/controller/jobs/pod/constants"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/placement"
)

// loss describes the pods that an owner loses to other jobs.
type loss struct {
	owner   owner
	master  bool
	workers int
	pods    int
	again   []string // the nodes on which replacements of its pods run
	fails   string   // why it fails for good, if it is a Job
	unless  string   // the condition under which it reacts otherwise
}

// losses are the pods that owners lose to preemption for a job, in one run. A pod whose replacement has found a node is
// not lost.
func (f *forecast) losses(r *run, job int) map[owner]loss {
	again := map[*placement.Pod]string{}
	for _, one := range r.outcomes {
		if one.instead != nil && one.bound != "" {
			again[one.instead] = one.bound
		}
	}
	for pod := range f.planned {
		if one := r.outcomes[pod]; one != nil && one.bound != "" { // its controller has created it again
			again[pod] = one.bound
		}
	}
	losses, jobs := map[owner]loss{}, f.jobLosses(r)
	for _, v := range r.lost {
		if v.job != job || v.failed || v.queue && !f.single(v.pod) {
			continue
		}
		object := v.pod.Object()
		o := f.ownerOf(v.pod)
		l := losses[o]
		l.owner = o
		if job := f.batchJobOf(object); job != nil {
			l.fails = jobs[job.UID].fails
		}
		l.unless = f.unlessSucceeded(object)
		switch node := again[v.pod]; {
		case node != "":
			l.again = append(l.again, node)
		case isWorker(object):
			l.workers++
		default:
			l.master = l.master || o.kind == aTrainingJob
			l.pods++
		}
		losses[o] = l
	}
	return losses
}

// ownerOutcome describes the outcome for an owner in a run, and requests the ConfigMaps that it needs for this.
func (f *forecast) ownerOutcome(r *run, l loss, needs map[types.NamespacedName]bool) string {
	if l.owner.kind != aTrainingJob {
		return l.outcome(staff{}, 0)
	}
	if s, minimum, isPlanned := f.plannedStaff(r, l.owner); isPlanned {
		s.running += l.workers
		return l.outcome(s, minimum)
	}
	s, minimum := f.staff[l.owner.key()], 1
	details, known := f.snapshot.Jobs[l.owner.key()]
	switch {
	case known:
		s.all, minimum = max(details.Workers.Max, s.running), details.Workers.Min
	case l.workers > 0:
		needs[l.owner.key()] = true
	}
	return l.outcome(s, minimum)
}

// plannedStaff counts the workers of a planned job in a run, and returns its minimum too.
func (f *forecast) plannedStaff(r *run, o owner) (s staff, minimum int, isPlanned bool) {
	at := slices.IndexFunc(f.jobs, func(job Job) bool { return !job.Grows && job.Noun == aTrainingJob && job.Key() == o.key() })
	if at < 0 {
		return s, 0, false
	}
	for pod, p := range f.planned {
		if p.job != at || !isWorker(pod.Object()) {
			continue
		}
		s.all++
		if !p.Optional {
			minimum++
		}
		if its := r.outcomes[pod]; its != nil && its.bound != "" {
			s.running++
		}
	}
	return s, minimum, true
}

// single reports whether a pod is a workload by itself: Kueue evicts it without other pods.
func (f *forecast) single(pod *placement.Pod) bool {
	return isWorker(pod.Object()) && pod.Object().Labels[podconstants.GroupNameLabel] == ""
}

// staff counts the workers of a training job.
type staff struct {
	running, all int
}

// staffOf counts the workers of each training job: those that have a node, and all that are wanted, which includes
// pending ones. A pod that is being deleted is not wanted.
func staffOf(pods []*corev1.Pod) map[types.NamespacedName]staff {
	found := map[types.NamespacedName]staff{}
	for _, pod := range pods {
		if !isWorker(pod) || pod.DeletionTimestamp != nil || pod.Labels[trainingjob.LabelJobName] == "" {
			continue
		}
		o := ownerOf(pod)
		s := found[o.key()]
		s.all++
		if pod.Spec.NodeName != "" {
			s.running++
		}
		found[o.key()] = s
	}
	return found
}

// outcome describes what happens to an owner that loses pods. staff and minimum are those of a training job.
func (l loss) outcome(s staff, minimum int) string {
	name := shortName(l.owner.namespace, l.owner.name)
	if len(l.again) > 0 && !l.master && l.workers+l.pods == 0 {
		return fmt.Sprintf("%s %s recreates it, and it starts on %s%s", l.owner.kind, name, strings.Join(l.again, ", "), l.unless)
	}
	if l.fails != "" && l.owner.kind != aTrainingJob {
		return fmt.Sprintf("%s %s fails: %s%s", l.owner.kind, name, l.fails, l.unless)
	}
	switch l.owner.kind {
	case "":
		return "it is lost: nothing recreates it"
	case aTrainingJob:
		left := max(s.running-l.workers, 0)
		switch {
		case l.master:
			return fmt.Sprintf("job %s stops until its master has a place again", name)
		case left < minimum:
			return fmt.Sprintf("job %s waits with %d of %d workers, below its minimum of %d", name, left, s.all, minimum)
		default:
			return fmt.Sprintf("job %s continues with %d of %d workers", name, left, s.all)
		}
	case aTask:
		return fmt.Sprintf("task %s starts again when there is room%s", name, l.unless)
	case "DaemonSet":
		return fmt.Sprintf("DaemonSet %s recreates it, and it waits for capacity on its node", name)
	default:
		return fmt.Sprintf("%s %s recreates it, and it waits for capacity%s", l.owner.kind, name, l.unless)
	}
}

// perhaps describes the outcome where it is open how many other pods are lost, and where there is room.
func (l loss) perhaps() string {
	name := shortName(l.owner.namespace, l.owner.name)
	switch {
	case l.owner.kind == "" || l.owner.kind == aTask || l.master:
		return l.outcome(staff{}, 0)
	case l.owner.kind == aTrainingJob:
		return fmt.Sprintf("job %s continues with fewer workers, or waits if they are too few", name)
	case l.fails != "":
		return fmt.Sprintf("%s %s recreates it, or fails: %s%s", l.owner.kind, name, l.fails, l.unless)
	default:
		return fmt.Sprintf("%s %s recreates it, and it starts where there is room%s", l.owner.kind, name, l.unless)
	}
}

// requeued describes the outcome for a workload that its queue has evicted.
func requeued(what string, ahead int) string {
	place := "first in line"
	if ahead > 0 {
		place = fmt.Sprintf("%d ahead of it", ahead)
	}
	return fmt.Sprintf("%s is queued again, %s", what, place)
}
