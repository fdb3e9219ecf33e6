package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	schedulinghelpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
	controllerconstants "sigs.k8s.io/kueue/pkg/controller/constants"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
)

// plannedHash replaces the hash of a template, which is not known before the object is created.
const plannedHash = "planned"

// deployment reads a Deployment. Kueue admits its pods one by one: its webhook copies queue and class to the template.
func (s *Set) deployment(object *unstructured.Unstructured) ([]forecast.Job, error) {
	var deployment appsv1.Deployment
	if err := decode(object, &deployment); err != nil {
		return nil, err
	}
	count, err := counted("spec.replicas", deployment.Spec.Replicas, 1)
	if err != nil {
		return nil, err
	}
	if deployment.Spec.Paused { // its controller creates no ReplicaSet until it is resumed
		count = 0
	}
	template := deployment.Spec.Template
	template.Labels = maps.Clone(template.Labels)
	if queue := deployment.Labels[controllerconstants.QueueLabel]; queue != "" {
		template.Labels = withValue(template.Labels, controllerconstants.QueueLabel, queue)
		if class := deployment.Labels[controllerconstants.WorkloadPriorityClassLabel]; class != "" {
			template.Labels = withValue(template.Labels, controllerconstants.WorkloadPriorityClassLabel, class)
		}
	}
	job, err := podByPod("Deployment", deployment.ObjectMeta, podSet{
		name: mainPodSet, count: count, template: template,
		finish: func(pod *corev1.Pod, i int) {
			pod.GenerateName = deployment.Name + "-" + plannedHash + "-"
			pod.Name = pod.GenerateName + strconv.Itoa(i)
			pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = plannedHash
			controlledBy(pod, "ReplicaSet", deployment.Name+"-"+plannedHash)
		},
	})
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: deployment.Namespace, Name: deployment.Name + "-" + plannedHash}}
	if set.Spec.Selector = deployment.Spec.Selector.DeepCopy(); set.Spec.Selector != nil {
		set.Spec.Selector.MatchLabels = withValue(set.Spec.Selector.MatchLabels, appsv1.DefaultDeploymentUniqueLabelKey, plannedHash)
	}
	job.ReplicaSets = []*appsv1.ReplicaSet{set}
	return []forecast.Job{job}, err
}

func (s *Set) replicaSet(object *unstructured.Unstructured) ([]forecast.Job, error) {
	var set appsv1.ReplicaSet
	if err := decode(object, &set); err != nil {
		return nil, err
	}
	count, err := counted("spec.replicas", set.Spec.Replicas, 1)
	if err != nil {
		return nil, err
	}
	job, err := podByPod("ReplicaSet", set.ObjectMeta, podSet{
		name: mainPodSet, count: count, template: set.Spec.Template,
		finish: func(pod *corev1.Pod, _ int) { controlledBy(pod, "ReplicaSet", set.Name) },
	})
	job.ReplicaSets = []*appsv1.ReplicaSet{&set}
	return []forecast.Job{job}, err
}

// statefulSet reads a StatefulSet: one Workload under Kueue, of a single pod set. Unless its pods are created in
// parallel, each is created when the one before it is ready.
func (s *Set) statefulSet(object *unstructured.Unstructured) ([]forecast.Job, error) {
	var set appsv1.StatefulSet
	if err := decode(object, &set); err != nil {
		return nil, err
	}
	count, err := counted("spec.replicas", set.Spec.Replicas, 1)
	if err != nil {
		return nil, err
	}
	start := 0
	if set.Spec.Ordinals != nil {
		start = int(set.Spec.Ordinals.Start)
	}
	job, err := workload("StatefulSet", set.ObjectMeta, []podSet{{
		name: mainPodSet, count: count, template: set.Spec.Template,
		finish: func(pod *corev1.Pod, i int) { finishStateful(pod, &set, start+i) },
	}})
	job.StatefulSets = []*appsv1.StatefulSet{&set}
	for i := range count {
		job.Claims = append(job.Claims, claimsOfOrdinal(&set, start+i)...)
	}
	if err == nil && set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement {
		for i := range job.Stages[0][0].Pods {
			job.Stages[0][0].Pods[i].Wave = i
		}
		if wait := set.Spec.MinReadySeconds; wait > 0 && count > 1 {
			job.Approximate = append(job.Approximate, fmt.Sprintf("each of its pods is created when the one before it has been ready for %d seconds", wait))
		}
	}
	return []forecast.Job{job}, err
}

// finishStateful names a pod by its ordinal, and adds its own claims.
func finishStateful(pod *corev1.Pod, set *appsv1.StatefulSet, ordinal int) {
	named(pod, set.Name+"-"+strconv.Itoa(ordinal))
	pod.Labels[appsv1.StatefulSetPodNameLabel] = pod.Name
	pod.Labels[appsv1.PodIndexLabel] = strconv.Itoa(ordinal)
	pod.Labels[appsv1.ControllerRevisionHashLabelKey] = plannedHash
	pod.Spec.Hostname, pod.Spec.Subdomain = pod.Name, set.Spec.ServiceName
	controlledBy(pod, "StatefulSet", set.Name)
	for i := range set.Spec.VolumeClaimTemplates {
		name := set.Spec.VolumeClaimTemplates[i].Name
		pod.Spec.Volumes = slices.DeleteFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == name })
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name + "-" + pod.Name},
		}})
	}
}

// claimsOfOrdinal are the volume claims that a StatefulSet makes for one of its pods.
func claimsOfOrdinal(set *appsv1.StatefulSet, ordinal int) []*corev1.PersistentVolumeClaim {
	var claims []*corev1.PersistentVolumeClaim
	for i := range set.Spec.VolumeClaimTemplates {
		claim := set.Spec.VolumeClaimTemplates[i].DeepCopy()
		claim.Namespace, claim.Name = set.Namespace, claim.Name+"-"+set.Name+"-"+strconv.Itoa(ordinal)
		claims = append(claims, claim)
	}
	return claims
}

// daemonSet reads a DaemonSet: a pod on every eligible node, tied to the node by affinity.
func (s *Set) daemonSet(object *unstructured.Unstructured) ([]forecast.Job, error) {
	var set appsv1.DaemonSet
	if err := decode(object, &set); err != nil {
		return nil, err
	}
	if len(s.given.Nodes) > MaxPods {
		return nil, tooMany(len(s.given.Nodes))
	}
	of := podSet{name: mainPodSet, count: 1, template: set.Spec.Template}
	job := forecast.Job{Noun: "DaemonSet", Namespace: set.Namespace, Name: set.Name}
	part := forecast.Part{}
	for _, node := range s.given.Nodes {
		pod := of.pods(set.Namespace, set.Name)[0]
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, daemonTolerations(&pod.Spec)...)
		if !runsDaemon(pod.Pod, node) {
			continue
		}
		pod.Name, pod.Role, pod.Set = set.Name+"-"+node.Name, "pod "+node.Name, ""
		pod.Labels[appsv1.ControllerRevisionHashLabelKey] = plannedHash
		controlledBy(pod.Pod, "DaemonSet", set.Name)
		tie(&pod.Spec, node.Name)
		part.Pods = append(part.Pods, pod)
	}
	job.Stages = []forecast.Stage{{part}}
	return []forecast.Job{job}, nil
}

// runsDaemon reports whether the DaemonSet controller creates a pod for a node (NodeShouldRunDaemonPod).
func runsDaemon(pod *corev1.Pod, node *corev1.Node) bool {
	if name := pod.Spec.NodeName; name != "" && name != node.Name {
		return false
	}
	if fits, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node); err != nil || !fits {
		return false
	}
	_, untolerated := schedulinghelpers.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints, pod.Spec.Tolerations, func(t *corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoExecute || t.Effect == corev1.TaintEffectNoSchedule
	}, false)
	return !untolerated
}

// daemonTolerations are those that the DaemonSet controller adds (AddOrUpdateDaemonPodTolerations).
func daemonTolerations(spec *corev1.PodSpec) []corev1.Toleration {
	tolerations := []corev1.Toleration{
		{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
		{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
		{Key: corev1.TaintNodeDiskPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
		{Key: corev1.TaintNodeMemoryPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
		{Key: corev1.TaintNodePIDPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
		{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	}
	if spec.HostNetwork {
		tolerations = append(tolerations, corev1.Toleration{Key: corev1.TaintNodeNetworkUnavailable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule})
	}
	return tolerations
}

// tie requires a node by its name, replacing all other terms (ReplaceDaemonSetPodNodeNameNodeAffinity).
func tie(spec *corev1.PodSpec, node string) {
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if spec.Affinity.NodeAffinity == nil {
		spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
	}}}
}

// controlledBy sets the controller of a pod. The scheduler spreads the pods of ReplicaSets and StatefulSets by it.
func controlledBy(pod *corev1.Pod, kind, name string) {
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: kind, Name: name, UID: plannedHash, Controller: new(true)}}
}
