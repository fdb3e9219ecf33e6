// Package forecasttest builds snapshots for tests: nodes, classes, and the pods of running jobs.
package forecasttest

import (
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/task"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
)

// AsOf is the time of every snapshot.
var AsOf = time.Date(2026, 11, 21, 10, 4, 7, 0, time.UTC)

// Node has the given CPUs, and more of every other resource than any test needs.
func Node(name, cpu string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("1Ti"), corev1.ResourcePods: resource.MustParse("110"),
			},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

// Class is a PriorityClass.
func Class(name string, value int32) *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
}

// Pod runs on a node ("" for a pending pod) with a priority, since the given number of seconds after midnight.
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

// CPU is a request of the given number of CPUs.
func CPU(amount string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
}

// Worker turns a pod into the worker of a training job.
func Worker(pod *corev1.Pod, job string, id int) *corev1.Pod {
	pod.Labels = map[string]string{
		trainingjob.LabelJobName: job, trainingjob.LabelRole: trainingjob.RoleWorker,
		trainingjob.LabelJobUID: "job-" + job, trainingjob.LabelWorkerID: strconv.Itoa(id),
	}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: job, UID: types.UID("job-" + job)}}
	return pod
}

// Master turns a pod into the master of a training job.
func Master(pod *corev1.Pod, job string) *corev1.Pod {
	pod.Labels = map[string]string{trainingjob.LabelJobName: job, trainingjob.LabelRole: trainingjob.RoleMaster}
	return OfJob(pod, job)
}

// OfJob turns a pod into one of a batch/v1 Job.
func OfJob(pod *corev1.Pod, job string) *corev1.Pod {
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[batchv1.JobNameLabel] = job
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: job, UID: types.UID("job-" + job), Controller: new(true)}}
	return pod
}

// TrainingJob is a training job with a master of one CPU and workers of three.
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

// Task is a task of n pods that request the given CPUs, in a queue unless that is "".
func Task(name, queue, class, cpus string, n int) task.Task {
	return task.Task{
		Name: name, Namespace: corev1.NamespaceDefault, Run: "true", NumNodes: n, Image: "image", TrainerImage: "trainer", CPUs: cpus,
		Queue: queue, PriorityClass: class,
	}
}

// Queues are LocalQueue user-queue and ClusterQueue team with a quota of CPUs, which preempts by priority, and the
// classes low (100) and high (1000).
func Queues(cpus string, workloads ...*kueue.Workload) *forecast.Queues {
	class := func(name string, value int32) *kueue.WorkloadPriorityClass {
		return &kueue.WorkloadPriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
	}
	return &forecast.Queues{
		Flavors: []*kueue.ResourceFlavor{{ObjectMeta: metav1.ObjectMeta{Name: "any"}}},
		ClusterQueues: []*kueue.ClusterQueue{{ObjectMeta: metav1.ObjectMeta{Name: "team"}, Spec: kueue.ClusterQueueSpec{
			NamespaceSelector: &metav1.LabelSelector{},
			Preemption:        &kueue.ClusterQueuePreemption{WithinClusterQueue: kueue.PreemptionPolicyLowerPriority},
			ResourceGroups: []kueue.ResourceGroup{{
				CoveredResources: []corev1.ResourceName{corev1.ResourceCPU},
				Flavors: []kueue.FlavorQuotas{{Name: "any", Resources: []kueue.ResourceQuota{{
					Name: corev1.ResourceCPU, NominalQuota: resource.MustParse(cpus),
				}}}},
			}},
		}}},
		LocalQueues: []*kueue.LocalQueue{{
			ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceDefault, Name: "user-queue"}, Spec: kueue.LocalQueueSpec{ClusterQueue: "team"},
		}},
		PriorityClasses: []*kueue.WorkloadPriorityClass{class("low", 100), class("high", 1000)},
		Workloads:       workloads,
	}
}

// Workload is the Workload of a Job (kind "Job") or a pod (kind "Pod") in queue user-queue: with quota since the given
// number of seconds after midnight, or, if the number is negative, waiting.
func Workload(kind, name string, uid types.UID, template *corev1.Pod, priority int32, since int) *kueue.Workload {
	at := metav1.NewTime(AsOf.Truncate(24 * time.Hour).Add(time.Duration(max(since, -since)) * time.Second))
	w := &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: corev1.NamespaceDefault, Name: strings.ToLower(kind) + "-" + name, UID: types.UID("workload-" + name), CreationTimestamp: at,
			OwnerReferences: []metav1.OwnerReference{{Kind: kind, Name: name, UID: uid, Controller: new(true)}},
		},
		Spec: kueue.WorkloadSpec{QueueName: "user-queue", Priority: &priority, PodSets: []kueue.PodSet{{
			Name: "main", Count: 1, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: template.Labels}, Spec: template.Spec},
		}}},
	}
	if since < 0 {
		return w
	}
	amount := template.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU]
	w.Status.Admission = &kueue.Admission{ClusterQueue: "team", PodSetAssignments: []kueue.PodSetAssignment{{
		Name: "main", Count: new(int32(1)), Flavors: map[corev1.ResourceName]kueue.ResourceFlavorReference{corev1.ResourceCPU: "any"},
		ResourceUsage: corev1.ResourceList{corev1.ResourceCPU: amount},
	}}}
	for _, condition := range []string{kueue.WorkloadQuotaReserved, kueue.WorkloadAdmitted} {
		w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue, LastTransitionTime: at})
	}
	return w
}
