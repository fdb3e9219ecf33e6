package forecast

import (
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	kueueconstants "sigs.k8s.io/kueue/pkg/constants"
	controllerconstants "sigs.k8s.io/kueue/pkg/controller/constants"
)

// Group is a set of identical pods of a job that is described rather than planned.
type Group struct {
	Name  string // "worker"
	Count int
	// Least is the number of pods that the job cannot run without; the others start and stop one by one.
	Least int
	// Follows is true if the pods are created after all pods of the groups before them run, as a master creates its
	// workers.
	Follows  bool
	Template corev1.PodTemplateSpec
}

// OfGroups is a job of such groups. A queue admits the required pods that are created together as one workload, and
// every other pod as a workload of its own.
func OfGroups(namespace, name, queue, class string, groups []Group) Job {
	job := Job{Noun: "job", Namespace: namespace, Name: name}
	var stage Stage
	var together Part
	end := func() {
		if len(together.Pods) > 0 {
			stage = append(Stage{together}, stage...)
		}
		if len(stage) > 0 {
			job.Stages = append(job.Stages, stage)
		}
		stage, together = nil, Part{Queue: queue, Class: class}
	}
	end()
	for _, group := range groups {
		if group.Follows {
			end()
		}
		for i := range group.Count {
			pod := Pod{Role: group.Name, Optional: i >= group.Least, Pod: podOf(group.Template, namespace, name+"-"+group.Name+"-"+strconv.Itoa(i))}
			pod.GenerateName = name + "-" + group.Name + "-"
			if group.Count > 1 {
				pod.Role += " " + strconv.Itoa(i)
			}
			if pod.Optional && queue != "" {
				stage = append(stage, Part{Pods: []Pod{pod}, Queue: queue, Class: class})
			} else {
				together.Pods = append(together.Pods, pod)
			}
		}
	}
	end()
	return job
}

// minParallelismAnnotation is how few pods a batch/v1 Job may be admitted with (partial admission). Kueue's own constant is
// in pkg/controller/jobs/job, which links its controllers.
const minParallelismAnnotation = "kueue.x-k8s.io/job-min-parallelism"

// OfBatchJob is a job with the pods of a Job: as many as run at the same time.
func OfBatchJob(of *batchv1.Job) Job {
	pods := 1
	if of.Spec.Parallelism != nil {
		pods = int(*of.Spec.Parallelism)
	}
	if c := of.Spec.Completions; c != nil {
		pods = min(pods, int(*c))
	}
	job := Job{Noun: aJob, Namespace: of.Namespace, Name: of.Name, Suspended: of.Spec.Suspend != nil && *of.Spec.Suspend}
	part := Part{
		Queue: of.Labels[controllerconstants.QueueLabel], Class: of.Labels[controllerconstants.WorkloadPriorityClassLabel], GatedBy: of.Annotations[kueueconstants.AdmissionGatedByAnnotation],
		Pods: podsOfJob(of, pods),
	}
	if least, err := strconv.Atoi(of.Annotations[minParallelismAnnotation]); err == nil && least > 0 {
		part.Least = least
	}
	job.Stages = []Stage{{part}}
	return job
}

// OfPod is a job of one pod.
func OfPod(pod *corev1.Pod) Job {
	part := Part{
		Queue: pod.Labels[controllerconstants.QueueLabel], Class: pod.Labels[controllerconstants.WorkloadPriorityClassLabel], GatedBy: pod.Annotations[kueueconstants.AdmissionGatedByAnnotation],
		Pods: []Pod{{Role: "the pod", Pod: pod}},
	}
	name := pod.Name
	if name == "" {
		name = strings.TrimSuffix(pod.GenerateName, "-")
	}
	return Job{Noun: "pod", Namespace: pod.Namespace, Name: name, Stages: []Stage{{part}}}
}
