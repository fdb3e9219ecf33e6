package forecast

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// withAdopted is the snapshot with the pods that the controllers of planned ReplicaSets and ReplicationControllers take
// over, and the jobs without the pods that are not created for that reason. Where they take over more than they want, or
// pods of other templates, see noteExisting.
func withAdopted(s *Snapshot, jobs []Job) (*Snapshot, []Job) {
	jobs = slices.Clone(jobs)
	for i, job := range jobs {
		if job.Noun != "ReplicaSet" && job.Noun != "ReplicationController" || job.Grows || job.Queued() || job.Stored != nil {
			continue
		}
		var adopted []*corev1.Pod
		for _, pod := range s.Pods {
			if pod.Namespace == job.Namespace && !over(pod) && job.takesOver(pod) {
				adopted = append(adopted, pod)
			}
		}
		pods := job.Pods()
		if len(adopted) == 0 || len(adopted) > len(pods) {
			continue
		}
		after := *s
		after.Pods = slices.Clone(s.Pods)
		for _, pod := range adopted {
			its := pod.DeepCopy()
			its.OwnerReferences = append(its.OwnerReferences, metav1.OwnerReference{Kind: job.Noun, Name: job.Name, UID: "planned-" + pod.UID, Controller: new(true)})
			after.Pods[slices.Index(s.Pods, pod)] = its
			job.adopts = append(job.adopts, pod.Namespace+"/"+pod.Name)
		}
		s = &after
		jobs[i] = job
		jobs[i].Grows, jobs[i].Stages = true, []Stage{{{Pods: pods[len(adopted):]}}}
	}
	return s, jobs
}

// noteAdopted notes that a pod that a controller takes over is evicted: it creates one of its own template then.
func (f *forecast) noteAdopted(runs []*run, job Job) {
	for _, r := range runs {
		for _, v := range r.lost {
			if slices.Contains(job.adopts, v.pod.String()) {
				f.notes.add(NotModelled, "Pod "+v.pod.Name, "%s takes over %s, which is evicted, and creates one of its own in its place", job, v.pod)
			}
		}
	}
}
