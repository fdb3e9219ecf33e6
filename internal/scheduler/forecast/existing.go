package forecast

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/placement"
)

// noteExisting notes what is there already and changes what the controller of a planned object does: the object itself,
// pods that the controller takes over, and pods with the names of its own.
func (f *forecast) noteExisting(a Answer, job Job) {
	name := job.Noun + " " + job.String()
	if job.Grows || len(a.Pods) == 0 && !f.isThere(job) { // a DaemonSet without nodes deletes the pods that it has
		return
	}
	if f.isKept(job) {
		f.notes.add(NotModelled, name, "%s is there already: to apply it again creates no pods, unless it is deleted before", name)
		return
	}
	if f.isThere(job) {
		f.notes.add(NotModelled, name,
			"%s is there already: its controller replaces the pods step by step, or keeps them, and neither is followed", name)
		return
	}
	for _, pod := range f.pods {
		switch {
		case pod.Namespace != job.Namespace || over(pod):
		case f.takesName(job, pod):
			f.notes.add(NotModelled, "Pod "+pod.Name,
				"a pod has the name %s already, which %s gives to one of its own", pod.Name, name)
		case job.takesOver(pod):
			f.notes.add(NotModelled, "Pod "+pod.Name,
				"pod %s has the labels that %s selects and no controller: it becomes one of its pods", pod.Name, name)
		}
	}
}

// over reports whether a pod has ended, or is about to.
func over(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil || placement.Finished(pod)
}

// stepwise are the kinds whose controllers change existing pods when the object changes.
var stepwise = []string{"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController"}

// isThere reports whether an object of those kinds exists, or pods of it.
func (f *forecast) isThere(job Job) bool {
	if !slices.Contains(stepwise, job.Noun) {
		return false
	}
	its := owner{kind: job.Noun, namespace: job.Namespace, name: job.Name}
	return !f.deletes(its) && (job.Stored != nil && job.Stored.Exists || slices.ContainsFunc(f.snapshot.Pods, func(pod *corev1.Pod) bool {
		return ownerOf(pod) == its && !over(pod)
	}))
}

// isKept reports whether a Job, or another object with pods that run once, exists that is applied again. The resources of
// this project and the plans of Terraform delete the old one before.
func (f *forecast) isKept(job Job) bool {
	its := owner{kind: job.Noun, namespace: job.Namespace, name: job.Name}
	if job.Object == nil || f.deletes(its) || slices.Contains(stepwise, job.Noun) {
		return false
	}
	exists := func(o *batchv1.Job) bool {
		return job.Noun == aJob && o.Namespace == job.Namespace && o.Name == job.Name
	}
	return job.Stored != nil && job.Stored.Exists || slices.ContainsFunc(f.snapshot.BatchJobs, exists) || slices.ContainsFunc(f.snapshot.Pods, func(pod *corev1.Pod) bool {
		return ownerOf(pod) == its && !over(pod)
	})
}

// takesName reports whether a pod has the name of one that the controller of a StatefulSet creates.
func (f *forecast) takesName(job Job, pod *corev1.Pod) bool {
	if job.Noun != "StatefulSet" {
		return false
	}
	for _, p := range f.planned {
		if p.Namespace == pod.Namespace && p.Name == pod.Name && p.OwnerReferences != nil && f.jobs[p.job].Key() == job.Key() {
			return true
		}
	}
	return false
}

// takesOver reports whether the controller of an object adopts a pod. That of a StatefulSet adopts only pods that have
// the names of its own.
func (j Job) takesOver(pod *corev1.Pod) bool {
	if metav1.GetControllerOfNoCopy(pod) != nil {
		return false
	}
	return slices.ContainsFunc(j.selectors(), func(s labels.Selector) bool {
		return !s.Empty() && s.Matches(labels.Set(pod.Labels))
	})
}

// selectors are those by which the controllers of ReplicaSets, ReplicationControllers, DaemonSets, and Jobs with selectors
// of their own find their pods.
func (j Job) selectors() (selectors []labels.Selector) {
	for _, set := range j.ReplicaSets {
		if s, err := metav1.LabelSelectorAsSelector(set.Spec.Selector); err == nil {
			selectors = append(selectors, s)
		}
	}
	for _, controller := range j.ReplicationControllers {
		selectors = append(selectors, labels.SelectorFromSet(controller.Spec.Selector))
	}
	object, read := j.Object.(*unstructured.Unstructured)
	if !read {
		return selectors
	}
	manual, _, _ := unstructured.NestedBool(object.Object, "spec", "manualSelector")
	if j.Noun != "DaemonSet" && (j.Noun != aJob || !manual) {
		return selectors
	}
	fields, _, _ := unstructured.NestedMap(object.Object, "spec", "selector")
	var selector metav1.LabelSelector
	if runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &selector) == nil {
		if s, err := metav1.LabelSelectorAsSelector(&selector); err == nil {
			selectors = append(selectors, s)
		}
	}
	return selectors
}

// barred reports whether the API server rejects the pod that a controller creates in the place of another, as its
// LimitRanges, classes, or Pod Security are newer than that one.
func (f *forecast) barred(pod *corev1.Pod) bool {
	if controller := metav1.GetControllerOfNoCopy(pod); controller != nil && f.snapshot.Barred[controller.UID] {
		return true
	}
	if f.snapshot.Open || f.snapshot.RuntimeClasses == nil {
		return false
	}
	if known, ok := f.barredPods[pod]; ok {
		return known
	}
	again := replacementPod(pod) // what admission has computed is not in the template
	again.Spec.Priority, again.Spec.PreemptionPolicy = nil, nil
	if again.Spec.RuntimeClassName != nil {
		again.Spec.Overhead = nil
	}
	_, refusal := f.apiServer.Complete(again)
	f.barredPods[pod] = refusal != nil
	return refusal != nil
}

// overQuota reports whether a quota, which is newer than a pod, rejects the one in its place even when all pods that are
// lost in a run have ended.
func (f *forecast) overQuota(r *run, pod *corev1.Pod) bool {
	return r.apiServer.Exceeded(pod) != "" && f.exceededAfter(r, pod)
}

// exceededAfter reports whether a quota has no room for a pod even when all pods that are lost in a run have ended.
func (f *forecast) exceededAfter(r *run, pod *corev1.Pod) bool {
	var ended []*corev1.Pod
	for _, v := range r.lost {
		if _, isPlanned := f.planned[v.pod]; !isPlanned {
			ended = append(ended, v.pod.Object())
		}
	}
	return r.apiServer.ExceededWithout(pod, ended)
}

// noteOverlaps notes evicted pods that several PodDisruptionBudgets protect: the controller updates only one of these
// budgets after an eviction (getPdbForPod in pkg/controller/disruption).
func (f *forecast) noteOverlaps(runs []*run) {
	for _, r := range runs {
		for _, v := range r.lost {
			if names := f.budgetsOf(v.pod.Object()); v.evicted() && len(names) > 1 {
				f.notes.add(NotModelled, "PodDisruptionBudget "+names[0],
					"PodDisruptionBudgets %s protect %s, and only one of them counts its eviction", join(names), f.podName(v.pod))
			}
		}
	}
}

// budgetsOf are the names of the budgets that protect a pod.
func (f *forecast) budgetsOf(pod *corev1.Pod) (names []string) {
	for _, budget := range f.snapshot.Budgets {
		s, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err == nil && budget.Namespace == pod.Namespace && s.Matches(labels.Set(pod.Labels)) {
			names = append(names, budget.Name)
		}
	}
	return names
}

// noteExceeded notes the evicted pods that a quota, which is newer than they are, may not let their controllers create
// again.
func (f *forecast) noteExceeded(runs []*run) {
	for _, r := range runs {
		losses := f.jobLosses(r)
		for _, v := range r.lost {
			pod := v.pod.Object()
			if _, planned := f.planned[v.pod]; planned || !v.evicted() || !f.recreates(pod, losses) {
				continue
			}
			if quota := r.apiServer.Exceeded(pod); quota != "" && !f.overQuota(r, pod) {
				f.notes.add(QuotaMayFree, "ResourceQuota "+shortName(pod.Namespace, quota),
					"ResourceQuota %s is exceeded, and may reject the pod that is to take the place of %s", quota, f.podName(v.pod))
			}
		}
	}
}
