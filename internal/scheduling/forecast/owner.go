package forecast

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/task"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainingjob"
)

// owner is what a pod belongs to.
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

// ownerOf tells by labels and owner references what a pod belongs to.
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

// replaces says whether it makes a pod again that the scheduler evicted, and that then waits for room at once. The pods that Kueue manages one by one wait for quota first.
func (o owner) replaces(pod *corev1.Pod) bool {
	return o.kind != "" && o.kind != "Node" && !trainingjob.Managed(pod)
}

func isWorker(pod *corev1.Pod) bool {
	return pod.Labels[trainingjob.LabelRole] == trainingjob.RoleWorker
}

// staff is the workers that a training job has.
type staff struct {
	running, all int
}

// staffOf counts the workers of each training job: those that have a place, and all that are wanted, which includes those
// that wait for one. A pod that is being deleted is not wanted any more.
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

// loss is what an owner loses to others.
type loss struct {
	owner   owner
	master  bool
	workers int
	pods    int
	again   []string // the nodes on which its pods were made again
}

// fate says what becomes of an owner that loses pods. A training job has a staff, and needs the floor of it.
func (l loss) fate(s staff, floor int) string {
	name := shortName(l.owner.namespace, l.owner.name)
	if len(l.again) > 0 && !l.master && l.workers+l.pods == 0 {
		return fmt.Sprintf("%s %s makes it again, and it starts on %s", l.owner.kind, name, strings.Join(l.again, ", "))
	}
	switch l.owner.kind {
	case "":
		return "it is gone: nothing makes it again"
	case aTrainingJob:
		left := max(s.running-l.workers, 0)
		switch {
		case l.master:
			return fmt.Sprintf("job %s stops until its master has a place again", name)
		case left < floor:
			return fmt.Sprintf("job %s waits with %d of %d workers, below its floor of %d", name, left, s.all, floor)
		default:
			return fmt.Sprintf("job %s goes on with %d of %d workers", name, left, s.all)
		}
	case aTask:
		return fmt.Sprintf("task %s starts again when there is room", name)
	case "DaemonSet":
		return fmt.Sprintf("DaemonSet %s makes it again on its node", name)
	default:
		return fmt.Sprintf("%s %s makes it again, and it waits for room", l.owner.kind, name)
	}
}

// requeued says what becomes of a workload that its queue has evicted.
func requeued(what string, ahead int) string {
	place := "first in line"
	if ahead > 0 {
		place = fmt.Sprintf("%d ahead of it", ahead)
	}
	return fmt.Sprintf("%s is queued again, %s", what, place)
}
