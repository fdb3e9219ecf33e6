package manifest

import (
	"crypto/sha1" //nolint:gosec // the LeaderWorkerSet controller's label
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kueueconstants "sigs.k8s.io/kueue/pkg/constants"
	controllerconstants "sigs.k8s.io/kueue/pkg/controller/constants"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
)

const lwsGroup = "leaderworkerset.x-k8s.io"

// leaderWorkerSet reads a LeaderWorkerSet: groups of a leader and workers, each a Workload of its own. The workers of a
// group are created when its leader is created or ready.
func (s *Set) leaderWorkerSet(object *unstructured.Unstructured) ([]forecast.Job, error) {
	var set struct {
		Spec struct {
			Replicas             *int32 `json:"replicas,omitempty"`
			StartupPolicy        string `json:"startupPolicy,omitempty"`
			LeaderWorkerTemplate struct {
				LeaderTemplate *corev1.PodTemplateSpec `json:"leaderTemplate,omitempty"`
				WorkerTemplate corev1.PodTemplateSpec  `json:"workerTemplate"`
				Size           *int32                  `json:"size,omitempty"`
				SubGroupPolicy *struct {
					SubGroupSize *int32 `json:"subGroupSize,omitempty"`
				} `json:"subGroupPolicy,omitempty"`
			} `json:"leaderWorkerTemplate"`
		} `json:"spec"`
	}
	if err := decodePart(object, &set); err != nil {
		return nil, err
	}
	groups, err := counted("spec.replicas", set.Spec.Replicas, 1)
	if err != nil {
		return nil, err
	}
	size, err := counted("spec.leaderWorkerTemplate.size", set.Spec.LeaderWorkerTemplate.Size, 1)
	if err != nil {
		return nil, err
	}
	if size < 1 || groups*size > MaxPods {
		return nil, tooMany(groups * size)
	}
	of := meta(object)
	job := forecast.Job{Noun: "LeaderWorkerSet", Namespace: of.Namespace, Name: of.Name}
	template := set.Spec.LeaderWorkerTemplate
	leader, leaderSet, workerSet := template.WorkerTemplate, mainPodSet, mainPodSet
	if template.LeaderTemplate != nil {
		leader, leaderSet, workerSet = *template.LeaderTemplate, "leader", "worker"
	}
	wave := 0
	if set.Spec.StartupPolicy == "LeaderReady" {
		wave = 1
	}
	var stage forecast.Stage
	// The leaders are those of a StatefulSet, and the workers of each group as well.
	job.StatefulSets = []*appsv1.StatefulSet{statefulSetOver(of, of.Name, map[string]string{lwsLabel("name"): of.Name, lwsLabel("worker-index"): "0"})}
	for group := range groups {
		part := forecast.Part{Queue: of.Labels[controllerconstants.QueueLabel], Class: of.Labels[controllerconstants.WorkloadPriorityClassLabel], GatedBy: of.Annotations[kueueconstants.AdmissionGatedByAnnotation]}
		leaderName := of.Name + "-" + strconv.Itoa(group)
		hash := sha1.Sum([]byte(of.Namespace + "/" + leaderName)) //nolint:gosec // as the webhook has it
		key := hex.EncodeToString(hash[:])
		if size > 1 {
			job.StatefulSets = append(job.StatefulSets, statefulSetOver(of, leaderName, map[string]string{
				lwsLabel("name"): of.Name, lwsLabel("group-index"): strconv.Itoa(group), lwsLabel("group-key"): key,
			}))
		}
		finish := func(pod *corev1.Pod, worker int) {
			pod.Labels[lwsLabel("name")], pod.Labels[lwsLabel("group-index")] = of.Name, strconv.Itoa(group)
			pod.Labels[lwsLabel("worker-index")], pod.Labels[lwsLabel("group-key")] = strconv.Itoa(worker), key
			if worker > 0 {
				named(pod, leaderName+"-"+strconv.Itoa(worker))
				controlledBy(pod, "StatefulSet", leaderName)
			} else {
				controlledBy(pod, "StatefulSet", of.Name)
			}
			if topology := of.Annotations[lwsLabel("exclusive-topology")]; topology != "" {
				exclusively(pod, lwsLabel("group-key"), key, topology)
			}
		}
		first := podSet{name: leaderSet, role: "leader", count: 1, template: leader, finish: func(pod *corev1.Pod, _ int) {
			named(pod, leaderName)
			finish(pod, 0)
		}}.pods(of.Namespace, of.Name)
		others := podSet{name: workerSet, role: "worker", count: size - 1, template: template.WorkerTemplate, wave: wave, finish: func(pod *corev1.Pod, i int) {
			finish(pod, i+1)
		}}.pods(of.Namespace, of.Name)
		first[0].Role = fmt.Sprintf("leader %d", group)
		for i := range others {
			others[i].Role = fmt.Sprintf("worker %d", group*(size-1)+i)
		}
		part.Pods = slices.Concat(first, others)
		stage = append(stage, part)
	}
	if policy := template.SubGroupPolicy; policy != nil && of.Annotations[lwsLabel("subgroup-exclusive-topology")] != "" {
		job.Approximate = append(job.Approximate, "the LeaderWorkerSet places its subgroups exclusively, which is not looked at")
	}
	job.Stages = []forecast.Stage{stage}
	return []forecast.Job{job}, nil
}

func statefulSetOver(of metav1.ObjectMeta, name string, pods map[string]string) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: name},
		Spec:       appsv1.StatefulSetSpec{Selector: &metav1.LabelSelector{MatchLabels: pods}},
	}
}

func lwsLabel(name string) string { return "leaderworkerset.sigs.k8s.io/" + name }
