package audit

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/preemption"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

// Cluster is what a cluster says.
type Cluster struct {
	Namespace string // of the victims; "" for all
	Jobs      []Job
	Events    []corev1.Event // of the scheduler, about the pods that it has preempted
	Pods      []*corev1.Pod
	Workloads []*kueue.Workload
}

// Job is a training job, as its master has reported it.
type Job struct {
	Namespace, Name string
	Status          trainingjob.Status
}

// OfCluster is the audit of a cluster: what the masters have reported, and the last preemption of each other Workload.
// What such a one lost is not known.
func OfCluster(c Cluster) Report {
	names, classes := map[string]string{}, map[string]string{}
	for _, p := range c.Pods {
		names[string(p.UID)] = "pod " + p.Namespace + "/" + p.Name
		classes[names[string(p.UID)]] = p.Spec.PriorityClassName
	}
	for _, w := range c.Workloads {
		names[string(w.UID)] = "workload " + w.Namespace + "/" + w.Name
		if ref := w.Spec.PriorityClassRef; ref != nil {
			classes[names[string(w.UID)]] = ref.Name
		}
	}
	var entries []Entry
	add := func(namespace, job, class string, all []trainingjob.Disruption) {
		for _, d := range trainingjob.NameUIDs(trainingjob.NamePreemptors(all, c.Events), names) {
			entries = append(entries, Entry{Namespace: namespace, Job: job, Class: class, ByClass: classes[d.By], Disruption: d})
		}
	}
	reported := func(w *kueue.Workload) bool { // by the master of its pods
		for _, job := range c.Jobs {
			if job.Namespace == w.Namespace && strings.HasPrefix(w.Name, trainingjob.MinJobName(job.Name)+"-") {
				return true
			}
		}
		return false
	}
	for _, job := range c.Jobs {
		if d := job.Status.Disruptions; d != nil {
			add(job.Namespace, job.Name, "", d.Newest)
		}
	}
	for _, w := range c.Workloads {
		condition := apimeta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadPreempted)
		if condition == nil || reported(w) || c.Namespace != "" && w.Namespace != c.Namespace {
			continue
		}
		uid, reason, preempted := preemption.ParseMessage(condition.Message)
		if !preempted {
			continue
		}
		owner := w.Name
		if len(w.OwnerReferences) == 1 {
			owner = w.OwnerReferences[0].Name
		}
		add(w.Namespace, owner, classes["workload "+w.Namespace+"/"+w.Name], []trainingjob.Disruption{{
			At: condition.LastTransitionTime.Time, DisruptionCause: trainingjob.DisruptionCause{
				Pod: "workload " + w.Name, UID: string(w.UID), Kind: trainingjob.DisruptionPreempted, Reason: reason, Message: condition.Message, ByUID: uid,
			},
		}})
	}
	return Of(entries)
}
