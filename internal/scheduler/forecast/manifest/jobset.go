package manifest

import (
	"cmp"
	"crypto/sha1" //nolint:gosec // the JobSet controller's label
	"encoding/hex"
	"fmt"
	"maps"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
)

// jobSetSpec is the part of jobset.x-k8s.io/v1alpha2 that affects pods.
type jobSetSpec struct {
	ReplicatedJobs []replicatedJob `json:"replicatedJobs,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	Network        *struct {
		EnableDNSHostnames *bool  `json:"enableDNSHostnames,omitempty"`
		Subdomain          string `json:"subdomain,omitempty"`
	} `json:"network,omitempty"`
	StartupPolicy *struct {
		Order string `json:"startupPolicyOrder,omitempty"`
	} `json:"startupPolicy,omitempty"`
	Coordinator *struct {
		ReplicatedJob string `json:"replicatedJob,omitempty"`
	} `json:"coordinator,omitempty"`
	VolumeClaimPolicies []struct {
		Templates []corev1.PersistentVolumeClaim `json:"templates,omitempty"`
	} `json:"volumeClaimPolicies,omitempty"`
	Suspend *bool `json:"suspend,omitempty"`
}

type replicatedJob struct {
	Name      string                  `json:"name"`
	GroupName string                  `json:"groupName,omitempty"`
	Replicas  *int32                  `json:"replicas,omitempty"`
	Template  batchv1.JobTemplateSpec `json:"template"`
	DependsOn []struct {
		Name   string `json:"name"`
		Status string `json:"status"`
	} `json:"dependsOn,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
}

const (
	exclusiveTopology = "alpha.jobset.sigs.k8s.io/exclusive-topology"
	exclusiveBySelect = "alpha.jobset.sigs.k8s.io/node-selector"
	jobSetKey         = "jobset.sigs.k8s.io/job-key"
	jobSetName        = "jobset.sigs.k8s.io/jobset-name"
	defaultGroup      = "default"
)

// subdomain is that of the pods of a JobSet of this name, and the name of its Service; "" without DNS host names.
func (s *jobSetSpec) subdomain(name string) string {
	switch {
	case s.Network == nil:
		return name
	case s.Network.EnableDNSHostnames != nil && !*s.Network.EnableDNSHostnames:
		return ""
	}
	return cmp.Or(s.Network.Subdomain, name)
}

func (s *Set) jobSet(object *unstructured.Unstructured) ([]forecast.Job, error) {
	var set struct {
		Spec jobSetSpec `json:"spec"`
	}
	if err := decodePart(object, &set); err != nil {
		return nil, err
	}
	job, err := ofJobSet("JobSet", meta(object), set.Spec)
	return []forecast.Job{job}, err
}

// ofJobSet are the pods of a JobSet: each replicated job is a pod set of its Workload, with its number of Jobs times
// the pods of each.
func ofJobSet(kind string, of metav1.ObjectMeta, spec jobSetSpec) (forecast.Job, error) {
	if len(spec.ReplicatedJobs) == 0 {
		return forecast.Job{}, fmt.Errorf("spec.replicatedJobs is empty")
	}
	waves, ends, err := jobSetWaves(spec)
	if err != nil {
		return forecast.Job{}, err
	}
	var sets []podSet
	var approximate []string
	for i := range spec.ReplicatedJobs {
		replicated := &spec.ReplicatedJobs[i]
		jobs, err := counted(fmt.Sprintf("spec.replicatedJobs[%d].replicas", i), replicated.Replicas, 1)
		if err != nil {
			return forecast.Job{}, err
		}
		each, err := podsOfJob(&replicated.Template.Spec)
		if err != nil {
			return forecast.Job{}, fmt.Errorf("spec.replicatedJobs[%d].template: %w", i, err)
		}
		if jobs*each > MaxPods {
			return forecast.Job{}, tooMany(jobs * each)
		}
		topology := of.Annotations[exclusiveTopology]
		if own := replicated.Template.Annotations[exclusiveTopology]; own != "" {
			topology = own
		}
		if topology != "" && isExclusiveByAffinity(of, replicated) {
			approximate = append(approximate, fmt.Sprintf("the JobSet's webhook keeps each Job of %s in a %s of its own, and creates its other pods when its first one is placed", replicated.Name, topology))
		}
		sets = append(sets, podSet{
			name: setName(replicated.Name), count: jobs * each, template: replicated.Template.Spec.Template, wave: waves[replicated.Name], ends: ends[replicated.Name],
			finish: func(pod *corev1.Pod, n int) { finishJobSet(pod, of, spec, replicated, n/each, n%each) },
		})
	}
	job, err := workload(kind, of, sets)
	job.Suspended, job.Approximate = isTrue(spec.Suspend), approximate
	if subdomain := spec.subdomain(of.Name); subdomain != "" { // createHeadlessSvcIfNecessary, before the Jobs
		job.Services = []*corev1.Service{serviceOver(of, subdomain, map[string]string{jobSetName: of.Name})}
	}
	return job, err
}

// jobSetWaves are the waves in which the Jobs are created: one after the other with startupPolicy InOrder, and after
// the Jobs that they depend on. A Job that others wait for until it is complete ends before them.
func jobSetWaves(spec jobSetSpec) (waves map[string]int, ends map[string]bool, err error) {
	waves, ends = map[string]int{}, map[string]bool{}
	inOrder := spec.StartupPolicy != nil && spec.StartupPolicy.Order == "InOrder"
	for i, replicated := range spec.ReplicatedJobs {
		if inOrder {
			waves[replicated.Name] = i
			continue
		}
		wave := 0
		for _, on := range replicated.DependsOn {
			before, known := waves[on.Name]
			if !known { // JobSet's own validation: a Job may depend only on those listed before it
				return nil, nil, fmt.Errorf("spec.replicatedJobs[%d] depends on %q, which is none of those before it", i, on.Name)
			}
			wave = max(wave, before+1)
			ends[on.Name] = ends[on.Name] || on.Status == "Complete"
		}
		waves[replicated.Name] = wave
	}
	return waves, ends, nil
}

// finishJobSet completes pod number index of Job number number, as labelAndAnnotateObject and the Job controller do.
func finishJobSet(pod *corev1.Pod, of metav1.ObjectMeta, spec jobSetSpec, replicated *replicatedJob, number, index int) {
	jobName := fmt.Sprintf("%s-%s-%d", of.Name, replicated.Name, number)
	pod.Name = jobName + "-" + strconv.Itoa(index)
	own := jobSetLabels(of, spec, replicated, number, jobName)
	maps.Copy(pod.Labels, own)
	pod.Annotations = maps.Clone(pod.Annotations)
	for key, value := range own {
		pod.Annotations = withValue(pod.Annotations, key, value)
	}
	// The webhook sets completionMode Indexed on Jobs without one.
	labelsOfJob(pod, jobName, index, replicated.Template.Spec.CompletionMode == nil || isIndexed(&replicated.Template.Spec))
	if pod.Spec.RestartPolicy == "" {
		pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	}
	if subdomain := spec.subdomain(of.Name); subdomain != "" {
		pod.Spec.Subdomain = subdomain
	}
	for _, policy := range spec.VolumeClaimPolicies {
		for i := range policy.Templates {
			name := policy.Templates[i].Name
			pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name + "-" + of.Name},
			}})
		}
	}
	placeExclusively(pod, of, replicated, jobName)
}

func jobSetLabels(of metav1.ObjectMeta, spec jobSetSpec, replicated *replicatedJob, number int, jobName string) map[string]string {
	group := func(r replicatedJob) string {
		if r.GroupName == "" {
			return defaultGroup
		}
		return r.GroupName
	}
	all, before, inGroup, beforeInGroup, reached := 0, 0, 0, 0, false
	for _, r := range spec.ReplicatedJobs {
		n := 1
		if r.Replicas != nil {
			n = int(*r.Replicas)
		}
		reached = reached || r.Name == replicated.Name
		all += n
		if !reached {
			before += n
		}
		if group(r) == group(*replicated) {
			inGroup += n
			if !reached {
				beforeInGroup += n
			}
		}
	}
	replicas := 1
	if replicated.Replicas != nil {
		replicas = int(*replicated.Replicas)
	}
	hash := sha1.Sum([]byte(of.Namespace + "/" + jobName)) //nolint:gosec // as the controller has it
	return map[string]string{
		jobSetName:                                  of.Name,
		"jobset.sigs.k8s.io/jobset-uid":             "planned-" + of.Name,
		"jobset.sigs.k8s.io/replicatedjob-name":     replicated.Name,
		"jobset.sigs.k8s.io/restart-attempt":        "0",
		"jobset.sigs.k8s.io/replicatedjob-replicas": strconv.Itoa(replicas),
		"jobset.sigs.k8s.io/global-replicas":        strconv.Itoa(all),
		"jobset.sigs.k8s.io/job-index":              strconv.Itoa(number),
		"jobset.sigs.k8s.io/job-global-index":       strconv.Itoa(before + number),
		"jobset.sigs.k8s.io/group-name":             group(*replicated),
		"jobset.sigs.k8s.io/group-replicas":         strconv.Itoa(inGroup),
		"jobset.sigs.k8s.io/job-group-index":        strconv.Itoa(beforeInGroup + number),
		jobSetKey:                                   hex.EncodeToString(hash[:]),
	}
}

func isExclusiveByAffinity(of metav1.ObjectMeta, replicated *replicatedJob) bool {
	_, all := of.Annotations[exclusiveBySelect]
	_, own := replicated.Template.Annotations[exclusiveBySelect]
	return !all && !own
}

// placeExclusively gives each Job a topology domain of its own: by labels that a user has put on the nodes, or by
// affinity. The webhook adds the affinity to the first pod only and lets the others follow it by a node selector, with
// the same result.
func placeExclusively(pod *corev1.Pod, of metav1.ObjectMeta, replicated *replicatedJob, jobName string) {
	topology := of.Annotations[exclusiveTopology]
	if own := replicated.Template.Annotations[exclusiveTopology]; own != "" {
		topology = own
	}
	if topology == "" {
		return
	}
	if !isExclusiveByAffinity(of, replicated) {
		pod.Spec.NodeSelector = withValue(maps.Clone(pod.Spec.NodeSelector), "alpha.jobset.sigs.k8s.io/namespaced-job", of.Namespace+"_"+jobName)
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{
			Key: "alpha.jobset.sigs.k8s.io/no-schedule", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule,
		})
		return
	}
	exclusively(pod, jobSetKey, pod.Labels[jobSetKey], topology)
}

// exclusively requires a topology domain with pods of this value of the label, and without pods of another value.
func exclusively(pod *corev1.Pod, label, value, topology string) {
	if pod.Spec.Affinity == nil {
		pod.Spec.Affinity = &corev1.Affinity{}
	}
	affinity := pod.Spec.Affinity
	if affinity.PodAffinity == nil {
		affinity.PodAffinity = &corev1.PodAffinity{}
	}
	if affinity.PodAntiAffinity == nil {
		affinity.PodAntiAffinity = &corev1.PodAntiAffinity{}
	}
	term := func(requirements ...metav1.LabelSelectorRequirement) corev1.PodAffinityTerm {
		return corev1.PodAffinityTerm{LabelSelector: &metav1.LabelSelector{MatchExpressions: requirements}, TopologyKey: topology, NamespaceSelector: &metav1.LabelSelector{}}
	}
	with, without := &affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, &affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	*with = append(*with, term(metav1.LabelSelectorRequirement{Key: label, Operator: metav1.LabelSelectorOpIn, Values: []string{value}}))
	*without = append(*without, term(metav1.LabelSelectorRequirement{Key: label, Operator: metav1.LabelSelectorOpExists},
		metav1.LabelSelectorRequirement{Key: label, Operator: metav1.LabelSelectorOpNotIn, Values: []string{value}}))
}
