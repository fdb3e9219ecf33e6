// Package checkpointage is the controller that sets Kueue's priority-boost of Workloads by the age of their jobs' last
// checkpoints, so that Kueue evicts first the workloads that lose the least work. It reads Workloads and the metadata
// of Jobs and pods, and it patches only two annotations of Workloads.
//
// A job takes part if its Job, pods or Workload have the annotation trainingjob.AnnotationLastCheckpoint; other jobs
// are ignored. The decision is that of scheduler/checkpointage, as in the simulator. This file computes its input,
// without I/O; controller.go does the rest.
package checkpointage

import (
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	controllerconstants "sigs.k8s.io/kueue/pkg/controller/constants"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/checkpointage"
)

// AnnotationSet on a Workload is the boost that this controller has set. A priority-boost of another value is somebody
// else's, and is left alone.
const AnnotationSet = "elastic-training.github.io/checkpoint-age-boost"

// reports are what Jobs and pods say about checkpoints.
type reports struct {
	newest     map[types.UID]time.Time // by the object that carries one, and all that control it; zero: no checkpoint yet
	controller map[types.UID]types.UID
}

// read reads the reports of objects. A pod's report counts for its Job, and for what controls that, a JobSet for example.
func read(objects ...metav1.Object) reports {
	r := reports{newest: map[types.UID]time.Time{}, controller: map[types.UID]types.UID{}}
	for _, o := range objects {
		if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
			r.controller[o.GetUID()] = owner.UID
		}
	}
	for _, o := range objects {
		at, reported := reportOf(o)
		if !reported {
			continue
		}
		r.climb(o.GetUID(), func(uid types.UID) {
			if known, there := r.newest[uid]; !there || at.After(known) {
				r.newest[uid] = at
			}
		})
	}
	return r
}

// levels bounds how far controllers of controllers are followed, so that a cycle ends.
const levels = 4

// climb calls visit for an object and for what controls it.
func (r reports) climb(uid types.UID, visit func(types.UID)) {
	for range levels {
		if uid == "" {
			return
		}
		visit(uid)
		uid = r.controller[uid]
	}
}

// reportOf is the time of the last checkpoint that an object reports, zero if it says that there is none yet.
// What is not a time is no report.
func reportOf(o metav1.Object) (at time.Time, reported bool) {
	text, there := o.GetAnnotations()[trainingjob.AnnotationLastCheckpoint]
	if !there || text == "" {
		return time.Time{}, there
	}
	at, err := time.Parse(time.RFC3339, text)
	return at, err == nil
}

// of is the newest report about the job of a Workload: by itself, its owners, or their controllers.
func (r reports) of(w *kueue.Workload) (at time.Time, reported bool) {
	at, reported = reportOf(w)
	for _, owner := range w.OwnerReferences {
		r.climb(owner.UID, func(uid types.UID) {
			if newest, there := r.newest[uid]; there {
				reported = true
				if newest.After(at) {
					at = newest
				}
			}
		})
	}
	return at, reported
}

// present is the boost that a Workload has, and whether this controller may change it.
func present(w *kueue.Workload) (boost int32, ours bool) {
	text, set := w.Annotations[controllerconstants.PriorityBoostAnnotationKey], w.Annotations[AnnotationSet]
	if text == "" {
		return 0, true
	}
	n, err := strconv.ParseInt(text, 10, 32)
	return int32(n), err == nil && text == set
}

// decide is the boost that a Workload should have. ours is false where it is not this controller's matter.
func decide(rule checkpointage.Rule, now time.Time, w *kueue.Workload, r reports, boost int32, changed time.Time) (wanted int32, ours bool) {
	at, reported := r.of(w)
	_, marked := w.Annotations[AnnotationSet]
	finished := meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadFinished)
	if _, free := present(w); !free || !reported && !marked || finished || w.DeletionTimestamp != nil {
		return 0, false
	}
	since, holds := held(w)
	return rule.Decide(now, checkpointage.Workload{
		Holds: reported && holds, Since: since, Checkpoint: at, Boost: boost, Changed: changed,
	}), true
}

// held is since when a Workload holds quota without being evicted.
func held(w *kueue.Workload) (since time.Time, holds bool) {
	reserved := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved)
	if reserved == nil || reserved.Status != metav1.ConditionTrue || meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadEvicted) {
		return time.Time{}, false
	}
	if a := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadAdmitted); a != nil && a.Status == metav1.ConditionTrue {
		return a.LastTransitionTime.Time, true
	}
	return reserved.LastTransitionTime.Time, true
}

// patch is the merge patch that sets a boost, and removes one of 0. It holds for the Workload with this UID only.
func patch(w *kueue.Workload, boost int32) map[string]any {
	annotations := map[string]any{controllerconstants.PriorityBoostAnnotationKey: nil, AnnotationSet: nil}
	if boost != 0 {
		text := strconv.Itoa(int(boost))
		annotations[controllerconstants.PriorityBoostAnnotationKey], annotations[AnnotationSet] = text, text
	}
	return map[string]any{"metadata": map[string]any{"uid": w.UID, "annotations": annotations}}
}
