package forecast

import (
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	controllerconstants "sigs.k8s.io/kueue/pkg/controller/constants"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/task"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	_ "github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob/strategicmerge" // for pod_overrides
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/podadmission"
)

// Job is a planned job: the pods that it will consist of.
type Job struct {
	Noun            string // "training job", "task"
	Namespace, Name string
	// Stages follow one another: the pods of a stage are created after all pods of the stages before it run.
	Stages []Stage
	// Grows is true if its pods are added to the existing job of this name. Otherwise a new job replaces one of the
	// same name: the pods and workloads of that job are gone when it starts.
	Grows bool
	// Services, ReplicaSets and StatefulSets are created with the job, and spread its pods.
	Services     []*corev1.Service
	ReplicaSets  []*appsv1.ReplicaSet
	StatefulSets []*appsv1.StatefulSet
	// ReplicationControllers are created with the job, and take over pods that they select.
	ReplicationControllers []*corev1.ReplicationController
	// Claims are created with the job, if they do not exist yet.
	Claims []*corev1.PersistentVolumeClaim
	// Suspended is true for a job that is created suspended: without a queue it has no pods until a user resumes it.
	Suspended bool
	// Object is what a user applies to create the job, as it was read; nil for a described job.
	Object runtime.Object
	// adopts are the existing pods that its controller takes over, as namespace/name.
	adopts []string
	// Stored is what the API server answered to a dry run of Object; nil if there was none.
	Stored *Stored
	// Approximate lists, in a sentence each, what is not known well enough of the object to be exact about its pods.
	Approximate []string
}

// Stored is what the API server says about the object of a job.
type Stored struct {
	// Refusal is the reason why it would not store the object, or the changes to an existing one; nil if it would.
	Refusal *podadmission.Refusal
	// Exists is true if an object of the name exists. Live is that object with the changes; nil if it is not known.
	Exists bool
	Live   *unstructured.Unstructured
}

// Stage is a list of parts that are created together.
type Stage []Part

// Part is a list of pods that are admitted together: by a queue, which admits all of them or none, or without a queue
// by the scheduler, which places them one by one in their order.
type Part struct {
	Pods []Pod
	// Queue is the LocalQueue, "" for none, and Class the WorkloadPriorityClass, "" for the pods' own priority.
	Queue, Class string
	// Least is the smallest number of pods with which the queue may admit the part (partial admission); 0 means all of
	// them.
	Least int
	// GatedBy names who holds the part back (annotation kueue.x-k8s.io/admission-gated-by); "" for nobody.
	GatedBy string
	// PriorityClassName is the PriorityClass whose value is the Workload's priority, if Class is empty and Kueue does
	// not take the priority from the first pod set that names a class.
	PriorityClassName string
	// Sets are the names of the Workload's pod sets in their order, if that differs from the order of the pods.
	Sets []string
}

// Pod is a planned pod, with its name in an answer.
type Pod struct {
	Role string // "master", "worker 0"
	// Optional is true for a pod that its job can run without: a worker above the minimum.
	Optional bool
	// Set is the name of the Workload's pod set that counts the pod. Where it is empty, the first word of Role is.
	Set string
	// Template is the pod template of a controller; nil for a pod that a user applies.
	Template *corev1.PodTemplateSpec
	// Uncounted is the name of an init container that the pod's controller adds, and that the Workload does not have; "" if
	// there is none.
	Uncounted string
	// Wave orders the pods of one part: those of a wave are created when all pods of the waves before it run, or have
	// ended if they are to end.
	Wave int
	// Ends is set for a pod that has to end before the next wave is created, as an initializer does.
	Ends bool
	// Answered is true if the API server answered a dry run of the pod: Pod is then what it would store, or Refusal the
	// reason why it would not.
	Answered bool
	Refusal  *podadmission.Refusal
	// NoAccount is what the API server says if the pod's ServiceAccount does not exist; "" if it does.
	NoAccount string
	*corev1.Pod
}

// MapPods returns the jobs with each pod changed. It does not modify its argument.
func MapPods(jobs []Job, change func(Pod) Pod) []Job {
	jobs = slices.Clone(jobs)
	for i := range jobs {
		jobs[i].Stages = slices.Clone(jobs[i].Stages)
		for j, stage := range jobs[i].Stages {
			stage = slices.Clone(stage)
			jobs[i].Stages[j] = stage
			for k := range stage {
				stage[k].Pods = slices.Clone(stage[k].Pods)
				for l, pod := range stage[k].Pods {
					stage[k].Pods[l] = change(pod)
				}
			}
		}
	}
	return jobs
}

// byRole are the pods of a job as its controller creates them, before queues choose among nodes.
func (j Job) byRole() map[string]*corev1.Pod {
	pods := map[string]*corev1.Pod{}
	for _, stage := range j.Stages {
		for _, part := range stage {
			for _, pod := range part.Pods {
				pods[pod.Role] = pod.Pod
			}
		}
	}
	return pods
}

// optional reports whether a job can run without a part.
func (p Part) optional() bool {
	return !slices.ContainsFunc(p.Pods, func(pod Pod) bool { return !pod.Optional })
}

// String is the job's name, with the namespace unless that is the default one.
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

// OfTrainingJob is the job of a definition: its master first and, when that runs, its workers. In a queue the minimum
// workers are admitted with the master, and every other worker by itself.
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
	job.Services = []*corev1.Service{d.Service()}
	first := Part{Pods: []Pod{{Role: trainingjob.RoleMaster, Pod: podOfJob(master, job.Namespace, job.Name, job.Name+"-"+trainingjob.RoleMaster)}}}
	if d.Queue == nil {
		job.Stages = []Stage{{first}, {{Pods: workers}}}
		return job, nil
	}
	minimum := min(d.Min, len(workers))
	first.Pods = append(first.Pods, workers[:minimum]...)
	first.Queue, first.Class = d.Queue.Name, d.Queue.MinClass()
	var burst Stage
	for _, worker := range workers[minimum:] {
		burst = append(burst, Part{Pods: []Pod{worker}, Queue: d.Queue.Name, Class: d.Queue.PriorityClass})
	}
	job.Stages = []Stage{{first}, burst}
	return job, nil
}

// WorkersToCome are the workers with numbers from `from` on. A running job creates them when its maximum grows, or to
// replace workers.
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
	w := trainingjob.Workers{Min: d.Min, Max: d.Max, MinPriorityClassName: d.MinPriorityClassName, Queue: d.Queue, Template: template}
	ref := trainingjob.JobRef{Name: d.Job.Name, Namespace: d.Job.Namespace}
	workers := make([]Pod, 0, d.Max)
	for id := range d.Max {
		pod := trainingjob.WorkerPod(w, ref, id, id < d.Min, "")
		workers = append(workers, Pod{Role: trainingjob.RoleWorker + " " + strconv.Itoa(id), Optional: id >= d.Min, Pod: pod})
	}
	return workers, nil
}

// OfTask is the pods of a task, which start together. flavors are those of its queue; see task.Given.
func OfTask(t task.Task, flavors []map[string]string) (Job, error) {
	job := Job{Noun: aTask, Namespace: t.Namespace, Name: t.Name}
	t.SecretValues = nil // secrets do not affect the forecast, and their values are not known
	objects, err := task.Render(t, task.Given{Flavors: flavors})
	if err != nil {
		return job, err
	}
	part := Part{Queue: t.Queue, Class: t.PriorityClass, Pods: podsOfJob(objects.Job, t.NumNodes)}
	job.Stages = []Stage{{part}}
	return job, nil
}

// podsOfJob are the first n pods of a Job, as its controller creates them: "the pod", or "pod 0" and so on.
func podsOfJob(job *batchv1.Job, n int) []Pod {
	indexed := job.Spec.CompletionMode != nil && *job.Spec.CompletionMode == batchv1.IndexedCompletion
	pods := make([]Pod, 0, n)
	for i := range n {
		pod := podOfJob(job.Spec.Template, job.Namespace, job.Name, job.Name+"-"+strconv.Itoa(i))
		if indexed {
			pod.GenerateName += strconv.Itoa(i) + "-"
			pod.Labels[batchv1.JobCompletionIndexAnnotation] = strconv.Itoa(i)
		}
		pods = append(pods, Pod{Role: "pod " + strconv.Itoa(i), Pod: pod})
	}
	if n == 1 {
		pods[0].Role = "the pod"
	}
	return pods
}

// podOfJob is a pod with the labels that the Job controller adds, by which affinities and spread constraints may select
// it, and with the beginning of the name that the controller gives it.
func podOfJob(template corev1.PodTemplateSpec, namespace, job, name string) *corev1.Pod {
	pod := podOf(template, namespace, name)
	pod.GenerateName = job + "-"
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	uid := "planned-" + job // not known before the Job is created
	for key, value := range map[string]string{
		batchv1.JobNameLabel: job, legacyJobNameLabel: job, batchv1.ControllerUidLabel: uid, legacyControllerUIDLabel: uid,
	} {
		pod.Labels[key] = value
	}
	return pod
}

// Labels of pods of Jobs from before they had a domain; the Job controller still sets them.
const (
	legacyJobNameLabel       = "job-name"
	legacyControllerUIDLabel = "controller-uid"
)

func podOf(template corev1.PodTemplateSpec, namespace, name string) *corev1.Pod {
	template = *template.DeepCopy()
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: template.Labels, Annotations: template.Annotations},
		Spec:       template.Spec,
	}
}

// Queued reports whether any part of the job goes through a queue.
func (j Job) Queued() bool {
	return slices.ContainsFunc(j.Stages, func(s Stage) bool {
		return slices.ContainsFunc(s, func(p Part) bool { return p.Queue != "" })
	})
}

// QueueIn puts every part of the job into a queue, as a workload of its own.
func (j *Job) QueueIn(queue string) {
	stages := make([]Stage, len(j.Stages))
	for i, stage := range j.Stages {
		stages[i] = slices.Clone(stage)
		for at := range stages[i] {
			stages[i][at].Queue = queue
		}
	}
	j.Stages = stages
}

// unmanaged are the namespaces in which Kueue queues nothing (managedJobsNamespaceSelector of its default
// configuration).
var unmanaged = []string{metav1.NamespaceSystem, "kueue-system"}

// queuedByDefault puts jobs that name no queue into their namespace's LocalQueue "default", as Kueue does.
func queuedByDefault(queues *Queues, jobs []Job) []Job {
	if queues == nil {
		return jobs
	}
	jobs = slices.Clone(jobs)
	for i := range jobs {
		namespace := jobs[i].Key().Namespace
		hasDefault := slices.ContainsFunc(queues.LocalQueues, func(q *kueue.LocalQueue) bool {
			return q.Namespace == namespace && q.Name == string(controllerconstants.DefaultLocalQueueName)
		})
		if hasDefault && !jobs[i].Queued() && !slices.Contains(unmanaged, namespace) {
			jobs[i].QueueIn(string(controllerconstants.DefaultLocalQueueName))
		}
	}
	return jobs
}

// answered reports whether the API server answered a dry run for all pods of the job.
func (j Job) answered() bool {
	all := true
	MapPods([]Job{j}, func(pod Pod) Pod {
		all = all && pod.Answered
		return pod
	})
	return all
}
