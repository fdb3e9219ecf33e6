package forecast

import (
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/placement"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/podadmission"
)

// ask submits every part that has a queue to that queue, and builds the steps. Pods that a master creates never reach
// their own queue if the master's queue does not let it start.
func (f *forecast) ask() {
	for number, job := range f.jobs {
		for _, note := range job.Approximate {
			f.notes.add(NotModelled, job.Noun+" "+job.String(), "%s", note)
		}
		starts := true
		uncreated := f.createObject(number)
		for _, stage := range job.Stages {
			step := step{job: number}
			later := waves{}
			for _, part := range stage {
				ready := part.Pods
				if !starts {
					ready = nil
				} else if part.Queue != "" {
					ready = f.admit(&step, job, part)
				}
				for _, pod := range part.Pods {
					at := slices.IndexFunc(ready, func(r Pod) bool { return r.Role == pod.Role })
					switch {
					case uncreated != nil:
						placed, refusal := f.enter(number, pod, false)
						f.offered[placed] = refusal == nil && uncreated.Quota
						f.reject(placed, uncreated, &step)
					case job.Suspended && part.Queue == "":
						placed, _ := f.enter(number, pod, false)
						step.suspended, step.order = append(step.suspended, placed), append(step.order, placed)
					case at < 0:
						placed, _ := f.enter(number, pod, false)
						step.held, step.order = append(step.held, placed), append(step.order, placed)
					case pod.Wave > 0:
						f.create(number, ready[at], later.step(number, pod.Wave))
					default:
						f.create(number, ready[at], &step)
					}
				}
				starts = starts && (len(ready) > 0 || part.optional())
			}
			f.steps = append(f.steps, later.after(step, f.planned)...)
		}
	}
	if f.queues != nil {
		f.queues.noteFollowers()
	}
}

// create submits a pod to the API server, and notes the result in a step.
func (f *forecast) create(job int, pod Pod, into *step) {
	placed, refusal := f.enter(job, pod, true)
	f.offered[placed] = refusal == nil || refusal.Quota
	into.order = append(into.order, placed)
	if refusal == nil {
		into.pods = append(into.pods, placed)
		return
	}
	f.reject(placed, refusal, into)
}

// createObject submits the object of a job, and what its controller creates before the pods, to the API server, as far as
// quotas count such objects; nil if they are created.
func (f *forecast) createObject(number int) *podadmission.Refusal {
	job := f.jobs[number]
	if job.Stored != nil && job.Stored.Refusal != nil && (!job.Stored.Exists || !f.snapshot.deletes(job)) {
		return job.Stored.Refusal
	}
	if job.Grows || f.isThere(job) {
		return nil
	}
	f.objects[number] = resourcesOf(job)
	for _, resource := range f.objects[number] {
		if refusal := f.apiServer.ChargeObject(job.Key().Namespace, resource); refusal != nil {
			return refusal
		}
	}
	return nil
}

// resourcesOf are the resources of which a job creates one object before its pods.
func resourcesOf(job Job) []string {
	switch job.Noun {
	case aJob, aTask, aTrainingJob:
		return []string{"jobs.batch"}
	case "Deployment":
		return []string{"deployments.apps", "replicasets.apps"}
	case "ReplicaSet", "StatefulSet", "DaemonSet":
		return []string{strings.ToLower(job.Noun) + "s.apps"}
	case "ReplicationController":
		return []string{"replicationcontrollers"}
	}
	if _, isJob := job.Object.(*batchv1.Job); isJob {
		return []string{"jobs.batch"}
	}
	return nil
}

// reject notes a pod that the API server rejects.
func (f *forecast) reject(pod *placement.Pod, refusal *podadmission.Refusal, into *step) {
	if !slices.Contains(into.order, pod) {
		into.order = append(into.order, pod)
	}
	into.rejected = append(into.rejected, rejection{pod, refusal})
}

// admit submits a part to its queue, and returns the pods that the queue lets start.
func (f *forecast) admit(step *step, job Job, part Part) []Pod {
	if f.queues == nil {
		step.admissions = append(step.admissions, admissionResult{part, admission{why: "the cluster has no queues"}})
		return nil
	}
	// Kueue counts what the API server adds to pods: requests of LimitRanges, overheads of RuntimeClasses.
	part.Pods = slices.Clone(part.Pods)
	for i, pod := range part.Pods {
		object := f.withPresent(pod)
		switch {
		case podsAreWorkloads[job.Noun]:
			object, _ = f.apiServer.Complete(object)
		case pod.Template != nil: // without what a dry run has added
			object.Spec.NodeSelector, object.Spec.Tolerations = pod.Template.Spec.NodeSelector, pod.Template.Spec.Tolerations
			fallthrough
		default:
			object, _ = f.apiServer.CompleteTemplate(object)
		}
		part.Pods[i].Pod = object
	}
	a := f.queues.admit(step.job, job, part, f.priorityOf(part))
	step.admissions = append(step.admissions, admissionResult{part, a})
	if !a.admitted || len(a.checks) > 0 {
		return nil
	}
	return f.queues.started(part, a)
}

// enter prepares a planned pod for scheduling, as the API server stores it. A created pod counts in its namespace's
// quotas; the refusal is the reason why it cannot be created.
func (f *forecast) enter(job int, pod Pod, created bool) (*placement.Pod, *podadmission.Refusal) {
	object, refusal := f.apiServer.Complete(f.withPresent(pod))
	switch {
	case pod.Answered && !f.snapshot.RulesPlanned:
		refusal = pod.Refusal
	case pod.Answered && pod.Refusal != nil && refusal == nil:
		f.notes.add(PlannedUnknown, pod.Role, "the API server rejects a pod now (%s), and may admit it once planned objects that decide about it are there", pod.Refusal.Message)
	}
	if refusal == nil {
		refusal = f.withoutAccount(pod)
	}
	if refusal == nil && created {
		refusal = f.apiServer.Charge(object)
	}
	placed := f.cluster.Pod(object)
	placed.Started = f.started
	pod.Pod = object
	f.planned[placed] = planned{job, pod}
	return placed, refusal
}

// withoutAccount is the API server's refusal of a pod whose ServiceAccount is neither there nor planned.
func (f *forecast) withoutAccount(pod Pod) *podadmission.Refusal {
	name := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Spec.ServiceAccountName}
	if pod.NoAccount == "" || slices.Contains(f.snapshot.PlannedAccounts, name) {
		return nil
	}
	if f.snapshot.Open {
		f.notes.add(PlannedUnknown, "ServiceAccount "+name.Name, "ServiceAccount %s is not there, and its pods cannot be made without it", name.Name)
		return nil
	}
	return &podadmission.Refusal{Message: pod.NoAccount}
}

// withPresent is the pod without classes and namespace that do not exist, if others may create them before it.
func (f *forecast) withPresent(pod Pod) *corev1.Pod {
	object := *pod.Pod
	if f.snapshot.RuntimeClasses == nil && object.Spec.RuntimeClassName != nil {
		f.notes.add(NotAllRead, "RuntimeClass "+*object.Spec.RuntimeClassName, "RuntimeClass %s could not be read: it may add an overhead and a node selector", *object.Spec.RuntimeClassName)
	}
	if name := object.Spec.PriorityClassName; f.snapshot.mayHave(PriorityClasses) && !f.apiServer.HasPriorityClass(name) {
		f.notes.add(MissingClass, "PriorityClass "+name, "PriorityClass %s is not known: its pods count with priority 0, and cannot be created without it", name)
		object.Spec.PriorityClassName = ""
		object.Spec.Priority = new(int32)
	}
	if name := object.Spec.RuntimeClassName; f.snapshot.Open && name != nil && !f.apiServer.HasRuntimeClass(*name) {
		f.notes.add(MissingClass, "RuntimeClass "+*name, "RuntimeClass %s is not known: its pods cannot be created without it", *name)
		object.Spec.RuntimeClassName = nil
	}
	return &object
}

// priorityOf is the priority of a part without a class of its queue: that of the first pod set that names a class, else
// that of its first pods.
func (f *forecast) priorityOf(part Part) int32 {
	if len(part.Pods) == 0 {
		return 0
	}
	spec := &part.Pods[0].Spec
	if part.PriorityClassName != "" {
		spec = &corev1.PodSpec{PriorityClassName: part.PriorityClassName}
	} else if at := slices.IndexFunc(part.Pods, func(p Pod) bool { return p.Spec.PriorityClassName != "" }); at >= 0 {
		spec = &part.Pods[at].Spec
	}
	return f.apiServer.PriorityOf(spec)
}
