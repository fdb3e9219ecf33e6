package trainingjob

import (
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// JobRef names the master's Job.
type JobRef struct {
	Name      string
	Namespace string
	UID       types.UID
}

// WorkerName is the name of a worker's pod.
func WorkerName(job string, id int) string { return job + "-worker-" + strconv.Itoa(id) }

// WorkerPod is the pod of worker number id; under a queue one above the minimum, or, for a forecast, what Job NAME-min
// makes. A minimum pod carries the minimum's
// priority class, where there is one. The owner reference is for garbage collection only: controller and
// blockOwnerDeletion stay unset, else the Job controller would strip it or count the worker as its own.
func WorkerPod(w Workers, job JobRef, id int, minimum bool, masterAddress string) *corev1.Pod {
	t := w.Template.DeepCopy()
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name:            WorkerName(job.Name, id),
			Namespace:       job.Namespace,
			Labels:          maps.Clone(t.Labels),
			Annotations:     maps.Clone(t.Annotations),
			OwnerReferences: []metav1.OwnerReference{job.OwnerReference()},
		},
		Spec: t.Spec,
	}
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	for _, key := range jobSelectorLabels {
		delete(pod.Labels, key)
	}
	if q := w.Queue; q != nil {
		pod.Labels = Merge(pod.Labels, q.labels(q.PriorityClass))
		if minimum {
			pod.Annotations = withRequest(pod.Annotations, q.Topology.OfCore(RoleWorker))
		} else {
			pod.Annotations = withRequest(pod.Annotations, q.Topology.OfBurst())
		}
	}
	pod.Labels[LabelJobUID] = string(job.UID)
	pod.Labels[LabelWorkerID] = strconv.Itoa(id)
	if minimum {
		pod.Labels[LabelMinimum] = "true"
		if w.MinPriorityClassName != "" {
			pod.Spec.PriorityClassName = w.MinPriorityClassName
		}
	}
	if i := slices.IndexFunc(pod.Spec.Containers, isWorker); i >= 0 {
		c := &pod.Spec.Containers[i]
		if w.Queue != nil && len(c.Args) > 0 {
			c.Args = slices.Insert(c.Args, 1, "--master-timeout", burstMasterTimeout) // before the user's, which decide
		}
		c.Args = append(c.Args, "--master", masterAddress, "--id", strconv.Itoa(id))
	}
	return pod
}

// OwnerReference makes the Job an owner for garbage collection only: controller and blockOwnerDeletion are unset.
func (j JobRef) OwnerReference() metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: "batch/v1", Kind: "Job", Name: j.Name, UID: j.UID,
	}
}

// completionIndex is the label (and annotation) with the index of a pod of an indexed Job: batchv1.JobCompletionIndexAnnotation.
const completionIndex = "batch.kubernetes.io/job-completion-index"

// WorkerID is the number of a worker's pod, from its label: the master's, or the Job controller's on one of the
// minimum's.
func WorkerID(pod *corev1.Pod) (int, bool) {
	text, ok := pod.Labels[LabelWorkerID]
	if !ok {
		text = pod.Labels[completionIndex]
	}
	id, err := strconv.Atoi(text)
	return id, err == nil && id >= 0
}

// MasterAddress is where the master of a job listens, by its Service: the cluster IP where there is one, so that no DNS
// is needed, and so that workers find the next master too.
func MasterAddress(service *corev1.Service) string {
	host := service.Spec.ClusterIP
	if host == "" || host == corev1.ClusterIPNone {
		host = strings.Join([]string{service.Name, service.Namespace, "svc"}, ".")
	}
	return net.JoinHostPort(host, strconv.Itoa(MasterPort))
}
