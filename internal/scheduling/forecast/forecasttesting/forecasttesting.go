// Package forecasttesting builds snapshots for tests: nodes, classes, and the pods of jobs that run.
package forecasttesting

import (
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainingjob"
)

// AsOf is the time of every snapshot.
var AsOf = time.Date(2026, 11, 21, 10, 4, 7, 0, time.UTC)

// Node has CPUs, and more of everything else than any test needs.
func Node(name, cpu string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("1Ti"), corev1.ResourcePods: resource.MustParse("110"),
		}},
	}
}

// Class is a PriorityClass.
func Class(name string, value int32) *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
}

// Pod runs on a node ("" for one that waits) with a priority, since so many seconds after midnight.
func Pod(name, node, cpu string, priority int32, since int) *corev1.Pod {
	at := metav1.NewTime(AsOf.Truncate(24 * time.Hour).Add(time.Duration(since) * time.Second))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceDefault, Name: name, UID: types.UID("pod-" + name), CreationTimestamp: at},
		Spec: corev1.PodSpec{
			NodeName: node, Priority: &priority, TerminationGracePeriodSeconds: new(int64(30)),
			Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: CPU(cpu)}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	if node != "" {
		pod.Status.Phase, pod.Status.StartTime = corev1.PodRunning, &at
	}
	return pod
}

// CPU is a request of so many.
func CPU(amount string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
}

// Worker makes a pod the worker of a training job.
func Worker(pod *corev1.Pod, job string, id int) *corev1.Pod {
	pod.Labels = map[string]string{
		trainingjob.LabelJobName: job, trainingjob.LabelRole: trainingjob.RoleWorker,
		trainingjob.LabelJobUID: "job-" + job, trainingjob.LabelWorkerID: strconv.Itoa(id),
	}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: job, UID: types.UID("job-" + job)}}
	return pod
}

// Master makes a pod the master of a training job.
func Master(pod *corev1.Pod, job string) *corev1.Pod {
	pod.Labels = map[string]string{trainingjob.LabelJobName: job, trainingjob.LabelRole: trainingjob.RoleMaster}
	return OfJob(pod, job)
}

// OfJob makes a pod that of a batch/v1 Job.
func OfJob(pod *corev1.Pod, job string) *corev1.Pod {
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[batchv1.JobNameLabel] = job
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: job, UID: types.UID("job-" + job), Controller: new(true)}}
	return pod
}

// TrainingJob describes one: a master of one CPU and workers of three.
func TrainingJob(name, masterClass, workerClass string, least, most int) trainingjob.Definition {
	resources := func(cpu string) *corev1.ResourceRequirements {
		return &corev1.ResourceRequirements{Requests: CPU(cpu), Limits: CPU(cpu)}
	}
	return trainingjob.Definition{
		Job: trainingjob.Job{Name: name, Namespace: corev1.NamespaceDefault}, Min: least, Max: most,
		Settings: trainingjob.Settings{
			Image:   "trainer",
			Master:  trainingjob.PodSettings{PriorityClassName: masterClass, Resources: resources("1")},
			Workers: trainingjob.PodSettings{PriorityClassName: workerClass, Resources: resources("3")},
		},
	}
}
