package forecast

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/task"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainingjob"
)

// Job is one that is planned: the pods that it will consist of.
type Job struct {
	Noun            string // "training job", "task"
	Namespace, Name string
	// Stages follow one another: what is in a stage is made when all pods of those before it run.
	Stages []Stage
	// Grows says that its pods are added to the job of this name that is there. A job that is made takes the place of one
	// that has its name: the pods and workloads of that are gone when it starts.
	Grows bool
}

// Stage is what comes into being together.
type Stage []Part

// Part is pods that go one way: through a queue, which admits all of them or none, or straight to the scheduler, which
// takes them one by one in their order.
type Part struct {
	Pods []Pod
	// Queue is the LocalQueue, "" for none, and Class the WorkloadPriorityClass, "" for the pods' own priority.
	Queue, Class string
	// Least is how many of the pods the queue may admit them with (partial admission); 0 is all of them.
	Least int
}

// Pod is one that is planned, and what it is called in an answer.
type Pod struct {
	Role string // "master", "worker 0"
	// Optional is a pod that its job can do without: a worker above the floor.
	Optional bool
	*corev1.Pod
}

// optional says whether a job can do without a part.
func (p Part) optional() bool {
	return !slices.ContainsFunc(p.Pods, func(pod Pod) bool { return !pod.Optional })
}

// String names the job as others read it: its namespace is said unless it is the default one.
func (j Job) String() string { return shortName(j.Namespace, j.Name) }

func shortName(namespace, name string) string {
	if namespace == "" || namespace == corev1.NamespaceDefault {
		return name
	}
	return namespace + "/" + name
}

// Key is the job's namespace and name.
func (j Job) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: j.Namespace, Name: j.Name}
}

// OfTrainingJob is the job that a definition describes: its master first and, when that runs, its workers; under a queue
// the floor with the master, and every other worker by itself.
func OfTrainingJob(d trainingjob.Definition) (Job, error) {
	job := Job{Noun: aTrainingJob, Namespace: d.Job.Namespace, Name: d.Job.Name}
	master, err := d.MasterTemplate()
	if err != nil {
		return job, fmt.Errorf("the master of %s: %w", d.Job.Name, err)
	}
	workers, err := ofWorkers(d)
	if err != nil {
		return job, err
	}
	first := Part{Pods: []Pod{{Role: trainingjob.RoleMaster, Pod: podOf(master, job.Namespace, job.Name+"-"+trainingjob.RoleMaster)}}}
	if d.Queue == nil {
		job.Stages = []Stage{{first}, {{Pods: workers}}}
		return job, nil
	}
	floor := min(d.Min, len(workers))
	first.Pods = append(first.Pods, workers[:floor]...)
	first.Queue, first.Class = d.Queue.Name, d.Queue.FloorClass()
	var burst Stage
	for _, worker := range workers[floor:] {
		burst = append(burst, Part{Pods: []Pod{worker}, Queue: d.Queue.Name, Class: d.Queue.PriorityClass})
	}
	job.Stages = []Stage{{first}, burst}
	return job, nil
}

// WorkersToCome are the workers from number `from` on that a running job makes when it may have more of them, or
// needs new ones.
func WorkersToCome(d trainingjob.Definition, from int) (Job, error) {
	job := Job{Noun: aTrainingJob, Namespace: d.Job.Namespace, Name: d.Job.Name, Grows: true}
	workers, err := ofWorkers(d)
	if err != nil || from >= len(workers) {
		return job, err
	}
	if d.Queue == nil {
		job.Stages = []Stage{{{Pods: workers[from:]}}}
		return job, nil
	}
	var burst Stage
	for _, worker := range workers[from:] {
		burst = append(burst, Part{Pods: []Pod{worker}, Queue: d.Queue.Name, Class: d.Queue.PriorityClass})
	}
	job.Stages = []Stage{burst}
	return job, nil
}

// ofWorkers are all workers of a job, in the order of their numbers.
func ofWorkers(d trainingjob.Definition) ([]Pod, error) {
	template, err := d.WorkerTemplate()
	if err != nil {
		return nil, fmt.Errorf("the workers of %s: %w", d.Job.Name, err)
	}
	w := trainingjob.Workers{Min: d.Min, Max: d.Max, FloorPriorityClassName: d.FloorPriorityClassName, Queue: d.Queue, Template: template}
	ref := trainingjob.JobRef{Name: d.Job.Name, Namespace: d.Job.Namespace}
	workers := make([]Pod, 0, d.Max)
	for id := range d.Max {
		pod := trainingjob.WorkerPod(w, ref, id, id < d.Min, "")
		workers = append(workers, Pod{Role: trainingjob.RoleWorker + " " + strconv.Itoa(id), Optional: id >= d.Min, Pod: pod})
	}
	return workers, nil
}

// OfTask is a task's pods, all at once. flavors are those of its queue; see task.Given.
func OfTask(t task.Task, flavors []map[string]string) (Job, error) {
	job := Job{Noun: aTask, Namespace: t.Namespace, Name: t.Name}
	t.SecretValues = nil // they decide nothing here, and their values are not known
	objects, err := task.Render(t, task.Given{Flavors: flavors})
	if err != nil {
		return job, err
	}
	part := Part{Queue: t.Queue, Class: t.PriorityClass, Pods: replicas(objects.Job.Spec.Template, job.Namespace, job.Name, t.NumNodes)}
	job.Stages = []Stage{{part}}
	return job, nil
}

// replicas are n pods of one template: "the pod", or "pod 0" and so on.
func replicas(template corev1.PodTemplateSpec, namespace, name string, n int) []Pod {
	if n == 1 {
		return []Pod{{Role: "the pod", Pod: podOf(template, namespace, name)}}
	}
	pods := make([]Pod, 0, n)
	for i := range n {
		pods = append(pods, Pod{Role: "pod " + strconv.Itoa(i), Pod: podOf(template, namespace, name+"-"+strconv.Itoa(i))})
	}
	return pods
}

func podOf(template corev1.PodTemplateSpec, namespace, name string) *corev1.Pod {
	template = *template.DeepCopy()
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: template.Labels, Annotations: template.Annotations},
		Spec:       template.Spec,
	}
}

// Queued says whether some of the job goes through a queue.
func (j Job) Queued() bool {
	return slices.ContainsFunc(j.Stages, func(s Stage) bool {
		return slices.ContainsFunc(s, func(p Part) bool { return p.Queue != "" })
	})
}

// QueueIn puts every part of the job into a queue, each by itself.
func (j *Job) QueueIn(queue string) {
	for _, stage := range j.Stages {
		for i := range stage {
			stage[i].Queue = queue
		}
	}
}
