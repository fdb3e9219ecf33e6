package workload

import (
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
)

// Kinds of owners.
var (
	JobKind = batchv1.SchemeGroupVersion.WithKind("Job")
	PodKind = corev1.SchemeGroupVersion.WithKind("Pod")
)

// MaxPodSets is the largest number of roles of a group.
const MaxPodSets = 18

const (
	// Provisioning parameters are handed on from owners to workloads by this prefix of annotations.
	provisioningPrefix = "provreq.kueue.x-k8s.io/"
	// podIndexLabel is where a group's pods carry their index, for topology-aware placement.
	podIndexLabel = "kueue.x-k8s.io/pod-group-pod-index"
)

// ForJob is the Workload that stands for a Job, without its priority.
func ForJob(job *batchv1.Job) *kueue.Workload {
	w := forOwner(NameFor(JobKind, job.Name, job.UID), job)
	w.Spec.PodSets = []kueue.PodSet{JobPodSet(job)}
	w.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, JobKind)}
	labelUID(w, job)
	return w
}

// ForPod is the Workload that stands for one pod, without its priority.
func ForPod(pod *corev1.Pod) *kueue.Workload {
	w := forOwner(NameFor(PodKind, pod.Name, pod.UID), pod)
	w.Spec.PodSets = []kueue.PodSet{podSet(kueue.DefaultPodSetName, pod)}
	w.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(pod, PodKind)}
	labelUID(w, pod)
	return w
}

// forOwner is what all workloads have from the object that they are made of.
func forOwner(name string, owner metav1.Object) *kueue.Workload {
	w := &kueue.Workload{
		TypeMeta: metav1.TypeMeta{APIVersion: kueue.SchemeGroupVersion.String(), Kind: "Workload"},
		ObjectMeta: metav1.ObjectMeta{
			Name:       name,
			Namespace:  owner.GetNamespace(),
			Finalizers: []string{kueue.ResourceInUseFinalizer},
		},
		Spec: kueue.WorkloadSpec{
			QueueName:                   kueue.LocalQueueName(owner.GetLabels()[kueue.QueueLabel]),
			MaximumExecutionTimeSeconds: maximumExecutionTime(owner),
		},
	}
	for key, value := range owner.GetAnnotations() {
		if strings.HasPrefix(key, provisioningPrefix) {
			metav1.SetMetaDataAnnotation(&w.ObjectMeta, key, value)
		}
	}
	if gates := owner.GetAnnotations()[kueue.AdmissionGatedByAnnotation]; gates != "" {
		metav1.SetMetaDataAnnotation(&w.ObjectMeta, kueue.AdmissionGatedByAnnotation, gates)
	}
	return w
}

func labelUID(w *kueue.Workload, owner metav1.Object) {
	if len(validation.IsValidLabelValue(string(owner.GetUID()))) == 0 {
		metav1.SetMetaDataLabel(&w.ObjectMeta, kueue.JobUIDLabel, string(owner.GetUID()))
	}
}

// maximumExecutionTime is the number of seconds in the owner's label; nil where there is none.
func maximumExecutionTime(owner metav1.Object) *int32 {
	seconds, err := strconv.ParseInt(owner.GetLabels()[kueue.MaxExecTimeSecondsLabel], 10, 32)
	if err != nil || seconds <= 0 {
		return nil
	}
	return ptr.To(int32(seconds))
}

// JobPods is how many pods of a Job run at the same time.
func JobPods(job *batchv1.Job) int32 {
	pods := ptr.Deref(job.Spec.Parallelism, 1)
	return min(pods, ptr.Deref(job.Spec.Completions, pods))
}

// jobMinPods is how few pods a Job may be admitted with; nil: all.
func jobMinPods(job *batchv1.Job) *int32 {
	least, err := strconv.ParseInt(job.Annotations[kueue.JobMinParallelismAnnotation], 10, 32)
	if err != nil {
		return nil
	}
	return ptr.To(int32(least))
}

// JobPodSet is the one pod set of a Job's workload. Labels that the Job controller puts on its pods are left out,
// except the Job's name.
func JobPodSet(job *batchv1.Job) kueue.PodSet {
	template := job.Spec.Template.DeepCopy()
	for _, label := range []string{"job-name", "controller-uid", batchv1.ControllerUidLabel} {
		delete(template.Labels, label)
	}
	set := kueue.PodSet{
		Name:            kueue.DefaultPodSetName,
		Template:        *template,
		Count:           JobPods(job),
		MinCount:        jobMinPods(job),
		TopologyRequest: topologyRequest(template.Annotations, batchv1.JobCompletionIndexAnnotation),
	}
	dropRepeatedVariables(&set.Template.Spec)
	return set
}

func podSet(name kueue.PodSetReference, pod *corev1.Pod) kueue.PodSet {
	set := kueue.PodSet{
		Name:            name,
		Template:        corev1.PodTemplateSpec{Spec: *pod.Spec.DeepCopy()},
		Count:           1,
		TopologyRequest: topologyRequest(pod.Annotations, podIndexLabel),
	}
	dropRepeatedVariables(&set.Template.Spec)
	return set
}

// topologyRequest is what the pods' annotations say about their place. One that cannot be read counts as none.
func topologyRequest(annotations map[string]string, indexLabel string) *kueue.PodSetTopologyRequest {
	request, err := kueue.TopologyRequestOf(annotations)
	if err != nil || request == nil {
		request = &kueue.PodSetTopologyRequest{}
	}
	request.PodIndexLabel = ptr.To(indexLabel)
	return request
}

// dropRepeatedVariables keeps the last value of each environment variable, as a kubelet does: a Workload's schema
// permits each name once.
func dropRepeatedVariables(spec *corev1.PodSpec) {
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			var kept []corev1.EnvVar
			for _, variable := range containers[i].Env {
				if at := slices.IndexFunc(kept, func(v corev1.EnvVar) bool { return v.Name == variable.Name }); at >= 0 {
					kept[at] = variable
				} else {
					kept = append(kept, variable)
				}
			}
			containers[i].Env = kept
		}
	}
}
