package manifest

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	controllerconstants "sigs.k8s.io/kueue/pkg/controller/constants"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
)

// rayClusterSpec is the part of ray.io/v1 that affects pods. The CPUs in rayStartParams matter to Ray only.
type rayClusterSpec struct {
	Suspend                 *bool `json:"suspend,omitempty"`
	EnableInTreeAutoscaling *bool `json:"enableInTreeAutoscaling,omitempty"`
	AutoscalerOptions       *struct {
		Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
	} `json:"autoscalerOptions,omitempty"`
	HeadGroupSpec struct {
		Template corev1.PodTemplateSpec `json:"template"`
		Labels   map[string]string      `json:"labels,omitempty"`
	} `json:"headGroupSpec"`
	WorkerGroupSpecs []rayWorkerGroup `json:"workerGroupSpecs,omitempty"`
}

type rayWorkerGroup struct {
	GroupName   string                 `json:"groupName"`
	Replicas    *int32                 `json:"replicas,omitempty"`
	MinReplicas *int32                 `json:"minReplicas,omitempty"`
	MaxReplicas *int32                 `json:"maxReplicas,omitempty"`
	NumOfHosts  *int32                 `json:"numOfHosts,omitempty"`
	Suspend     *bool                  `json:"suspend,omitempty"`
	Labels      map[string]string      `json:"labels,omitempty"`
	Template    corev1.PodTemplateSpec `json:"template"`
}

const (
	headPodSet      = "head"
	submitterPodSet = "submitter"
)

func (s *Set) rayCluster(object *unstructured.Unstructured) ([]forecast.Job, error) {
	var cluster struct {
		Spec rayClusterSpec `json:"spec"`
	}
	if err := decodePart(object, &cluster); err != nil {
		return nil, err
	}
	return rayJobs("RayCluster", meta(object), cluster.Spec, nil)
}

// rayService reads the RayCluster of a RayService.
func (s *Set) rayService(object *unstructured.Unstructured) ([]forecast.Job, error) {
	var service struct {
		Spec struct {
			RayClusterConfig rayClusterSpec `json:"rayClusterConfig"`
		} `json:"spec"`
	}
	if err := decodePart(object, &service); err != nil {
		return nil, err
	}
	return rayJobs("RayService", meta(object), service.Spec.RayClusterConfig, nil)
}

// rayJob reads a RayJob: a RayCluster and, by default, a Job that submits to it once it runs.
func (s *Set) rayJob(object *unstructured.Unstructured) ([]forecast.Job, error) {
	var job struct {
		Spec struct {
			RayClusterSpec       *rayClusterSpec         `json:"rayClusterSpec,omitempty"`
			ClusterSelector      map[string]string       `json:"clusterSelector,omitempty"`
			SubmissionMode       string                  `json:"submissionMode,omitempty"`
			SubmitterPodTemplate *corev1.PodTemplateSpec `json:"submitterPodTemplate,omitempty"`
			Suspend              bool                    `json:"suspend,omitempty"`
		} `json:"spec"`
	}
	if err := decodePart(object, &job); err != nil {
		return nil, err
	}
	of := meta(object)
	submits := job.Spec.SubmissionMode == "" || job.Spec.SubmissionMode == "K8sJobMode"
	cluster := job.Spec.RayClusterSpec
	selects := len(job.Spec.ClusterSelector) > 0
	if cluster == nil && !selects {
		return nil, fmt.Errorf("spec.rayClusterSpec is missing")
	}
	var submitter *podSet
	if submits {
		submitter = &podSet{name: submitterPodSet, count: 1, wave: 1, template: submitterTemplate(job.Spec.SubmitterPodTemplate)}
		submitter.finish = func(pod *corev1.Pod, _ int) {
			pod.Name = of.Name + "-" + submitterPodSet
			labelsOfJob(pod, of.Name, 0, false)
		}
	}
	if selects { // it runs on an existing cluster, and Kueue does not manage it
		var sets []podSet
		if submitter != nil {
			submitter.wave = 0
			sets = append(sets, *submitter)
		}
		delete(of.Labels, controllerconstants.QueueLabel)
		submission, err := workload("RayJob", of, sets)
		submission.Suspended = job.Spec.Suspend
		return []forecast.Job{submission}, err
	}
	if job.Spec.SubmissionMode == "SidecarMode" {
		containers := &cluster.HeadGroupSpec.Template.Spec.Containers
		*containers = append(*containers, submitterContainer())
	}
	jobs, err := rayJobs("RayJob", of, *cluster, submitter)
	for i := range jobs {
		jobs[i].Suspended = jobs[i].Suspended || job.Spec.Suspend
	}
	return jobs, err
}

// rayJobs are the pods of a RayCluster: the head, those of each worker group, and a submitter.
func rayJobs(kind string, of metav1.ObjectMeta, spec rayClusterSpec, submitter *podSet) ([]forecast.Job, error) {
	if len(spec.HeadGroupSpec.Template.Spec.Containers) == 0 {
		return nil, fmt.Errorf("the template of headGroupSpec has no containers")
	}
	head := spec.HeadGroupSpec.Template
	if isTrue(spec.EnableInTreeAutoscaling) {
		head.Spec.Containers = append(head.Spec.Containers, autoscalerContainer(spec))
	}
	sets := []podSet{{name: headPodSet, count: 1, template: head, finish: func(pod *corev1.Pod, _ int) {
		pod.GenerateName, pod.Name = of.Name+"-"+headPodSet+"-", of.Name+"-"+headPodSet
		labelRay(pod, of.Name, headPodSet, "headgroup", spec.HeadGroupSpec.Labels)
	}}}
	for i := range spec.WorkerGroupSpecs {
		group := &spec.WorkerGroupSpecs[i]
		if setName(group.GroupName) == headPodSet {
			return nil, fmt.Errorf("workerGroupSpecs[%d].groupName is %q, which is the head's", i, group.GroupName)
		}
		count, err := rayWorkers(i, group)
		if err != nil {
			return nil, err
		}
		if count == 0 {
			continue
		}
		sets = append(sets, podSet{name: setName(group.GroupName), count: count, template: group.Template, uncounted: waitName, finish: func(pod *corev1.Pod, n int) {
			pod.GenerateName = of.Name + "-" + group.GroupName + "-worker-"
			pod.Name = pod.GenerateName + strconv.Itoa(n)
			labelRay(pod, of.Name, "worker", group.GroupName, group.Labels)
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, waitContainer())
		}})
	}
	if submitter != nil {
		sets = append(sets, *submitter)
	}
	job, err := workload(kind, of, sets)
	job.Suspended = isTrue(spec.Suspend)
	// reconcileHeadlessService, before the pods. The Service over the head spreads nothing.
	if slices.ContainsFunc(spec.WorkerGroupSpecs, func(g rayWorkerGroup) bool { return g.NumOfHosts != nil && *g.NumOfHosts > 1 }) {
		job.Services = []*corev1.Service{serviceOver(of, of.Name+"-headless", map[string]string{"ray.io/cluster": of.Name, "ray.io/node-type": "worker"})}
	}
	if isTrue(spec.EnableInTreeAutoscaling) {
		job.Approximate = append(job.Approximate, fmt.Sprintf("Ray's autoscaler of %s adds and removes workers as it needs them", of.Name))
	}
	return []forecast.Job{job}, err
}

// rayWorkers is the number of pods of a worker group (GetWorkerGroupDesiredReplicas): replicas within their bounds,
// times hosts.
func rayWorkers(i int, group *rayWorkerGroup) (int, error) {
	field := func(name string) string { return fmt.Sprintf("workerGroupSpecs[%d].%s", i, name) }
	replicas, err := counted(field("replicas"), group.Replicas, 0) // the CRD's default
	if err != nil {
		return 0, err
	}
	least, err := counted(field("minReplicas"), group.MinReplicas, 0)
	if err != nil {
		return 0, err
	}
	replicas = max(replicas, least)
	if most := group.MaxReplicas; most != nil && *most >= 0 {
		replicas = min(replicas, int(*most))
	}
	hosts, err := counted(field("numOfHosts"), group.NumOfHosts, 1)
	if err != nil {
		return 0, err
	}
	if isTrue(group.Suspend) {
		return 0, nil
	}
	if replicas*hosts > MaxPods {
		return 0, tooMany(replicas * hosts)
	}
	return replicas * hosts, nil
}

// labelRay labels a pod as KubeRay's labelPod does.
func labelRay(pod *corev1.Pod, cluster, node, group string, labels map[string]string) {
	standard := map[string]string{
		"ray.io/is-ray-node": "yes", "ray.io/identifier": cluster + "-" + node, "app.kubernetes.io/name": "kuberay", "app.kubernetes.io/created-by": "kuberay-operator",
	}
	for key, value := range labels {
		pod.Labels[key] = value
	}
	for key, value := range standard {
		if _, set := pod.Labels[key]; !set {
			pod.Labels[key] = value
		}
	}
	pod.Labels["ray.io/cluster"], pod.Labels["ray.io/node-type"], pod.Labels["ray.io/group"] = cluster, node, group
}

func amounts(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}

// waitName is the name of waitContainer.
const waitName = "wait-gcs-ready"

// waitContainer is the init container in which a worker waits for the head. Kueue does not count it: it is not in
// the template from which Kueue makes the Workload (BuildPodSets in v0.19).
func waitContainer() corev1.Container {
	return corev1.Container{Name: waitName, Image: "ray", Resources: corev1.ResourceRequirements{Requests: amounts("200m", "256Mi"), Limits: amounts("200m", "256Mi")}}
}

// autoscalerContainer is the head's second container where Ray scales the cluster itself.
func autoscalerContainer(spec rayClusterSpec) corev1.Container {
	resources := corev1.ResourceRequirements{Requests: amounts("500m", "512Mi"), Limits: amounts("500m", "512Mi")}
	if spec.AutoscalerOptions != nil && spec.AutoscalerOptions.Resources != nil {
		resources = *spec.AutoscalerOptions.Resources
	}
	return corev1.Container{Name: "autoscaler", Image: "ray", Resources: resources}
}

func submitterContainer() corev1.Container {
	return corev1.Container{Name: "ray-job-submitter", Image: "ray", Resources: corev1.ResourceRequirements{Requests: amounts("500m", "200Mi"), Limits: amounts("1", "1Gi")}}
}

// submitterTemplate is the RayJob's own template, or KubeRay's default.
func submitterTemplate(given *corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	if given != nil {
		return *given
	}
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{submitterContainer()}, RestartPolicy: corev1.RestartPolicyNever}}
}
