package forecast

import (
	"regexp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Deletion is an object that a plan deletes with all pods that are created for it, such as a Deployment, a JobSet, or
// this provider's "training job" and "task".
type Deletion struct {
	Kind, Namespace, Name string
}

// kindLabels are the labels with which controllers mark the pods of their objects, however long the chain of owners is.
var kindLabels = map[string][]string{
	"jobset.sigs.k8s.io/jobset-name":    {"JobSet", "TrainJob"}, // the JobSet of a TrainJob has its name
	"ray.io/cluster":                    {"RayCluster"},
	"leaderworkerset.sigs.k8s.io/name":  {"LeaderWorkerSet"},
	"workload.codeflare.dev/appwrapper": {"AppWrapper"},
	"training.kubeflow.org/job-name":    {"PyTorchJob", "MPIJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob"},
	"kueue.x-k8s.io/pod-group-name":     {"pod group"},
	"batch.kubernetes.io/job-name":      {aJob},
	"ray.io/originated-from-cr-name":    {"RayJob"},
}

var (
	// The name of a CronJob's Job ends with the minute of its schedule.
	ofCronJob = regexp.MustCompile(`^(.+)-\d+$`)
	// The name of a RayJob's RayCluster ends with five random characters.
	ofRayJob = regexp.MustCompile(`^(.+?)(?:-raycluster)?-[a-z0-9]{5}$`)
)

// ownersOf returns all objects that a pod belongs to, as far as the pod shows them: itself, its controller, and those
// that its labels name.
func ownersOf(pod *corev1.Pod) []owner {
	owners := []owner{{kind: "Pod", namespace: pod.Namespace, name: pod.Name}}
	add := func(kind, name string) {
		owners = append(owners, owner{kind: kind, namespace: pod.Namespace, name: name})
	}
	if o := ownerOf(pod); o.kind != "" {
		owners = append(owners, o)
	}
	if controller := metav1.GetControllerOfNoCopy(pod); controller != nil {
		add(controller.Kind, controller.Name)
		if parts := ofCronJob.FindStringSubmatch(controller.Name); controller.Kind == aJob && parts != nil {
			add("CronJob", parts[1])
		}
	}
	for label, kinds := range kindLabels {
		if name := pod.Labels[label]; name != "" {
			for _, kind := range kinds {
				add(kind, name)
			}
		}
	}
	if parts := ofRayJob.FindStringSubmatch(pod.Labels["ray.io/cluster"]); parts != nil {
		add("RayJob", parts[1])
	}
	return owners
}
