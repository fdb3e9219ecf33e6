package forecast

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/task"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/placement"
)

// owner is the object that a pod belongs to.
type owner struct {
	kind            string // "training job", "task", "Job", "ReplicaSet"; "" for a pod of its own
	namespace, name string
}

const (
	aTrainingJob = "training job"
	aTask        = "task"
	aJob         = "Job"
)

// String is "training job low-prio-job"; "" for none.
func (o owner) String() string {
	if o.kind == "" {
		return ""
	}
	return o.kind + " " + shortName(o.namespace, o.name)
}

func (o owner) key() types.NamespacedName {
	return types.NamespacedName{Namespace: o.namespace, Name: o.name}
}

// ownerOf determines the owner of a pod from labels and owner references.
func ownerOf(pod *corev1.Pod) owner {
	o := owner{namespace: pod.Namespace}
	controller := metav1.GetControllerOfNoCopy(pod)
	switch {
	case pod.Labels[trainingjob.LabelJobName] != "" && pod.Labels[trainingjob.LabelRole] != "":
		o.kind, o.name = aTrainingJob, pod.Labels[trainingjob.LabelJobName]
	case pod.Labels[task.LabelTask] != "":
		o.kind, o.name = aTask, pod.Labels[task.LabelTask]
	case controller != nil && controller.Kind == "ReplicaSet" && pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey] != "":
		o.kind, o.name = "Deployment", strings.TrimSuffix(controller.Name, "-"+pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey])
	case controller != nil:
		o.kind, o.name = controller.Kind, controller.Name
	}
	return o
}

// ownerOf is the owner of a pod of the cluster, or of a planned pod, whose object does not name a controller that is
// planned too.
func (f *forecast) ownerOf(pod *placement.Pod) owner {
	o := ownerOf(pod.Object())
	if p, planned := f.planned[pod]; planned && o.kind == "" && !f.jobs[p.job].ofPods() {
		return owner{kind: f.jobs[p.job].Noun, namespace: f.jobs[p.job].Namespace, name: f.jobs[p.job].Name}
	}
	return o
}

// replaces reports whether the owner creates a new pod for one that preemption evicted, and the new pod waits for room
// immediately. Pods that Kueue manages one by one wait for quota first.
func (o owner) replaces(pod *corev1.Pod) bool {
	return o.kind != "" && o.kind != "Node" && !trainingjob.Managed(pod)
}

func isWorker(pod *corev1.Pod) bool {
	return pod.Labels[trainingjob.LabelRole] == trainingjob.RoleWorker
}
