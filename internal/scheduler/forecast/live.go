package forecast

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// What becomes of an object that exists is followed where its pods stay and others are added. Where its controller
// replaces or deletes pods, the forecast is approximate: see noteExisting.

// extended are the jobs without the pods that exist already: of an object that is applied again, its controller creates
// only the pods that it has in addition.
func extended(s *Snapshot, jobs []Job) []Job {
	jobs = slices.Clone(jobs)
	for i, job := range jobs {
		switch {
		case job.Stored == nil || !job.Stored.Exists || job.Grows || s.deletes(job):
		case job.Stored.Refusal != nil: // it stays as it is
			jobs[i].Grows = true
		case job.Stored.Live != nil:
			if pods, known := s.addedTo(job); known {
				jobs[i] = job.onlyWith(pods)
			}
		}
	}
	return jobs
}

// deletes reports whether the plan deletes the object of a job.
func (s *Snapshot) deletes(job Job) bool {
	return slices.ContainsFunc(s.Deletions, func(d Deletion) bool {
		return d.Namespace == job.Namespace && d.Name == job.Name && (d.Kind == job.Noun || job.Noun == aPod && d.Kind == "Pod")
	})
}

// The nouns of pods without a controller.
const (
	aPod      = "pod"
	aPodGroup = "pod group"
)

// ofPods reports whether a job is pods that no controller creates again.
func (j Job) ofPods() bool { return j.Noun == aPod || j.Noun == aPodGroup }

// onlyWith is a job that exists and gets some pods in addition.
func (j Job) onlyWith(pods []Pod) Job {
	j.Grows, j.Stages = true, nil
	if len(pods) > 0 {
		part := Part{Pods: pods}
		j.Stages = []Stage{{part}}
	}
	j.ReplicaSets, j.StatefulSets, j.ReplicationControllers = nil, nil, nil // those of the cluster count
	return j
}

// addedTo are the pods that the controller of an existing object creates after it has changed; known is false if it does
// anything else.
func (s *Snapshot) addedTo(job Job) (added []Pod, known bool) {
	live, pods := job.Stored.Live, job.Pods()
	switch job.Noun {
	case aPod:
		return nil, true
	case aJob:
		return s.addedToJob(job, pods)
	case "ReplicaSet", "ReplicationController":
		return fromThe(pods, replicas(live, "status"), replicas(live, "spec"), job.Queued())
	case "DaemonSet":
		return nil, unchanged(live)
	case "Deployment":
		if unchanged(live) {
			return nil, true
		}
		return s.addedToDeployment(job, pods)
	case "StatefulSet":
		if unchanged(live) {
			return nil, true
		}
		return s.addedToStatefulSet(job, pods)
	}
	return nil, false
}

// unchanged reports whether a controller has nothing to do about an object.
func unchanged(live *unstructured.Unstructured) bool {
	observed, found, err := unstructured.NestedInt64(live.Object, "status", "observedGeneration")
	return found && err == nil && observed == live.GetGeneration()
}

// replicas is a number of pods of an object; −1 if it cannot be read.
func replicas(live *unstructured.Unstructured, section string) int {
	n, _, err := unstructured.NestedInt64(live.Object, section, "replicas")
	if err != nil {
		return -1
	}
	return int(n)
}

// fromThe are the pods from number had on. Fewer pods than there are, and pods that their queue admits one by one, are
// not known.
func fromThe(pods []Pod, had, want int, queued bool) (added []Pod, known bool) {
	switch {
	case had < 0 || want < 0:
		return nil, false
	case want == had:
		return nil, true
	case queued || want < had || want > len(pods):
		return nil, false
	}
	return pods[had:want], true
}

// addedToJob are the pods that a Job creates when its parallelism or its completions grow, or when it is resumed.
func (s *Snapshot) addedToJob(job Job, pods []Pod) (added []Pod, known bool) {
	var live batchv1.Job
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(job.Stored.Live.Object, &live); err != nil {
		return nil, false
	}
	at := slices.IndexFunc(s.BatchJobs, func(o *batchv1.Job) bool { return o.UID == live.UID })
	want, have := wantedPods(&live), int(live.Status.Active)
	switch {
	case ends(&live):
		return nil, true
	case at < 0 || wantedPods(s.BatchJobs[at]) != have: // it backs off, or its controller has not acted yet
		return nil, false
	case want == have:
		return nil, true
	case job.Queued() || want < have:
		return nil, false
	}
	if live.Spec.CompletionMode == nil || *live.Spec.CompletionMode != batchv1.IndexedCompletion {
		return fromThe(pods, have, want, false)
	}
	for _, index := range s.freeIndexes(&live, want-have) {
		added = append(added, indexed(pods, live.Name, index))
	}
	return added, true
}

// ends reports whether a Job has ended, or is about to.
func ends(job *batchv1.Job) bool {
	return job.DeletionTimestamp != nil || slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Status == corev1.ConditionTrue && c.Type != batchv1.JobSuspended
	})
}

// wantedPods is the number of pods of a Job that run at the same time.
func wantedPods(job *batchv1.Job) int {
	if ends(job) || job.Spec.Suspend != nil && *job.Spec.Suspend {
		return 0
	}
	want := int32(1)
	if job.Spec.Parallelism != nil {
		want = *job.Spec.Parallelism
	}
	if job.Spec.Completions != nil {
		want = min(want, *job.Spec.Completions-job.Status.Succeeded)
	}
	return int(want)
}

// freeIndexes are the first n indexes of a Job that have no pod and have not ended.
func (s *Snapshot) freeIndexes(job *batchv1.Job, n int) (free []int) {
	taken := map[int]bool{}
	for _, pod := range s.Pods {
		controller := metav1.GetControllerOfNoCopy(pod)
		if index, err := strconv.Atoi(pod.Annotations[batchv1.JobCompletionIndexAnnotation]); err == nil && controller != nil && controller.UID == job.UID {
			taken[index] = true
		}
	}
	ended := []string{job.Status.CompletedIndexes}
	if job.Status.FailedIndexes != nil {
		ended = append(ended, *job.Status.FailedIndexes)
	}
	for index := 0; len(free) < n && index < int(*job.Spec.Completions); index++ {
		has := func(list string) bool { return hasIndex(list, index) }
		if !taken[index] && !slices.ContainsFunc(ended, has) {
			free = append(free, index)
		}
	}
	return free
}

// hasIndex reports whether an index is in a list such as "1,3-5".
func hasIndex(list string, index int) bool {
	for interval := range strings.SplitSeq(list, ",") {
		first, last, _ := strings.Cut(interval, "-")
		from, err := strconv.Atoi(first)
		if err != nil {
			continue
		}
		to, err := strconv.Atoi(last)
		if err != nil {
			to = from
		}
		if from <= index && index <= to {
			return true
		}
	}
	return false
}

// indexed is the pod of an index of a Job.
func indexed(pods []Pod, job string, index int) Pod {
	pod := pods[0]
	pod.Pod = pod.DeepCopy()
	number := strconv.Itoa(index)
	pod.Name, pod.Role = job+"-"+number, "pod "+number
	pod.Labels = maps.Clone(pod.Labels)
	pod.Labels[batchv1.JobCompletionIndexAnnotation] = number
	return pod
}

// addedToDeployment are the pods that a Deployment creates when only its number of replicas grows. They are of the
// ReplicaSet that exists.
func (s *Snapshot) addedToDeployment(job Job, pods []Pod) (added []Pod, known bool) {
	var live appsv1.Deployment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(job.Stored.Live.Object, &live); err != nil {
		return nil, false
	}
	var current *appsv1.ReplicaSet
	for _, set := range s.ReplicaSets {
		if controller := metav1.GetControllerOfNoCopy(set); controller == nil || controller.UID != live.UID || set.Spec.Replicas == nil || *set.Spec.Replicas == 0 {
			continue
		}
		if current != nil { // a rollout is under way
			return nil, false
		}
		current = set
	}
	if current == nil || !sameTemplate(current.Spec.Template, live.Spec.Template) || current.Status.Replicas != *current.Spec.Replicas {
		return nil, false
	}
	added, known = fromThe(pods, int(*current.Spec.Replicas), int(*live.Spec.Replicas), job.Queued())
	hash := current.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
	added = slices.Clone(added)
	for i := range added {
		added[i].Pod = added[i].DeepCopy()
		added[i].Labels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
		added[i].OwnerReferences = []metav1.OwnerReference{ownedBy("ReplicaSet", current.Name, current.UID)}
	}
	return added, known
}

func ownedBy(kind, name string, uid types.UID) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: kind, Name: name, UID: uid, Controller: new(true)}
}

// sameTemplate reports whether a ReplicaSet is the one of a Deployment's template (EqualIgnoreHash in
// pkg/controller/deployment/util).
func sameTemplate(a, b corev1.PodTemplateSpec) bool {
	a, b = *a.DeepCopy(), *b.DeepCopy()
	delete(a.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	delete(b.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	return equality.Semantic.DeepEqual(a, b)
}

// addedToStatefulSet are the pods that a StatefulSet creates when only its number of replicas grows, and all others run.
func (s *Snapshot) addedToStatefulSet(job Job, pods []Pod) (added []Pod, known bool) {
	var live appsv1.StatefulSet
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(job.Stored.Live.Object, &live); err != nil {
		return nil, false
	}
	at := slices.IndexFunc(s.StatefulSets, func(o *appsv1.StatefulSet) bool { return o.UID == live.UID })
	if at < 0 {
		return nil, false
	}
	old := s.StatefulSets[at]
	if !equality.Semantic.DeepEqual(old.Spec.Template, live.Spec.Template) || !equality.Semantic.DeepEqual(old.Spec.Ordinals, live.Spec.Ordinals) ||
		old.Status.ReadyReplicas != *old.Spec.Replicas || old.Status.UpdatedReplicas != *old.Spec.Replicas {
		return nil, false
	}
	added, known = fromThe(pods, int(*old.Spec.Replicas), int(*live.Spec.Replicas), job.Queued())
	added = slices.Clone(added)
	for i := range added {
		added[i].Pod = added[i].DeepCopy()
		added[i].Labels[appsv1.ControllerRevisionHashLabelKey] = live.Status.UpdateRevision
		added[i].OwnerReferences = []metav1.OwnerReference{ownedBy("StatefulSet", live.Name, live.UID)}
	}
	return added, known
}

// Pods are all pods of a job.
func (j Job) Pods() []Pod {
	var pods []Pod
	for _, stage := range j.Stages {
		for _, part := range stage {
			pods = append(pods, part.Pods...)
		}
	}
	return pods
}
