package manifest

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kueueconstants "sigs.k8s.io/kueue/pkg/constants"
	controllerconstants "sigs.k8s.io/kueue/pkg/controller/constants"
	podconstants "sigs.k8s.io/kueue/pkg/controller/jobs/pod/constants"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
)

// pod reads a Pod, or its whole pod group for the first pod of the group.
func (s *Set) pod(object *unstructured.Unstructured) ([]forecast.Job, error) {
	key, grouped := s.groupOf(object)
	if !grouped {
		pod, err := readPod(object)
		if err != nil {
			return nil, err
		}
		return []forecast.Job{forecast.OfPod(pod)}, nil
	}
	if s.read[key] {
		return nil, nil
	}
	s.read[key] = true
	job := forecast.Job{Noun: "pod group", Namespace: key.namespace, Name: key.name}
	pods, err := podsOfGroup(s.groups[key], key.namespace)
	if err != nil {
		return nil, err
	}
	part, err := groupPart(key.name, pods)
	if err != nil {
		return nil, err
	}
	job.Stages = []forecast.Stage{{part}}
	return []forecast.Job{job}, nil
}

// podsOfGroup are pods with their names as roles. Pods of one generated name have numbers.
func podsOfGroup(objects []*unstructured.Unstructured, namespace string) (pods []forecast.Pod, err error) {
	count, next := map[string]int{}, map[string]int{}
	for _, object := range objects {
		count[nameOf(object)]++
	}
	for _, object := range objects {
		role := nameOf(object)
		if role == "" {
			return nil, errors.New("a pod of the group has neither metadata.name nor metadata.generateName")
		}
		if name := role; count[name] > 1 {
			role = fmt.Sprintf("%s %d", name, next[name])
			next[name]++
		}
		object = object.DeepCopy()
		object.SetNamespace(namespace)
		object.SetName(strings.ReplaceAll(role, " ", "-"))
		pod, err := readPod(object)
		if err != nil {
			return nil, fmt.Errorf("pod %s of the group: %w", role, err)
		}
		pods = append(pods, forecast.Pod{Role: role, Pod: pod})
	}
	return pods, nil
}

// groupOf is the pod group of a pod that Kueue manages.
func (s *Set) groupOf(pod *unstructured.Unstructured) (objectKey, bool) {
	labels := pod.GetLabels()
	name := labels[podconstants.GroupNameLabel]
	return objectKey{"pod group", s.namespaceOf(pod), name}, name != "" && labels[controllerconstants.QueueLabel] != ""
}

func readPod(object *unstructured.Unstructured) (*corev1.Pod, error) {
	var pod corev1.Pod
	if err := decode(object, &pod); err != nil {
		return nil, err
	}
	pod.Spec.NodeName, pod.Status = specNodeName(&pod), corev1.PodStatus{} // as before it ran
	pod.UID, pod.ResourceVersion, pod.OwnerReferences = "", "", nil
	return &pod, nil
}

// specNodeName is the node that a user chose for a pod, and not one that the scheduler chose for a pod that has run.
func specNodeName(pod *corev1.Pod) string {
	if pod.Status.Phase != "" || pod.UID != "" {
		return ""
	}
	return pod.Spec.NodeName
}

// groupPart is the Workload of a pod group (Kueue's pkg/controller/jobs/pod): its pods of equal shape are one pod set.
// Kueue creates it when all pods exist, or with the first one if the group asks for fast admission.
func groupPart(name string, pods []forecast.Pod) (forecast.Part, error) {
	first := pods[0]
	part := forecast.Part{Queue: first.Labels[controllerconstants.QueueLabel], Class: first.Labels[controllerconstants.WorkloadPriorityClassLabel], GatedBy: first.Annotations[kueueconstants.AdmissionGatedByAnnotation]}
	text := first.Annotations[podconstants.GroupTotalCountAnnotation]
	total, err := strconv.Atoi(text)
	if err != nil || total < 1 || total > MaxPods {
		return part, fmt.Errorf("pod group %s: annotation %s is %q; it says of how many pods the group consists", name, podconstants.GroupTotalCountAnnotation, text)
	}
	fast := first.Annotations[podconstants.GroupFastAdmissionAnnotationKey] == "true"
	for _, pod := range pods {
		if pod.Labels[controllerconstants.QueueLabel] != part.Queue {
			return part, fmt.Errorf("pod group %s: its pods name the queues %s and %s", name, part.Queue, pod.Labels[controllerconstants.QueueLabel])
		}
		if pod.Annotations[podconstants.GroupTotalCountAnnotation] != text {
			return part, fmt.Errorf("pod group %s: its pods do not agree on %s", name, podconstants.GroupTotalCountAnnotation)
		}
		pod.Set = mainPodSet
		if !fast {
			pod.Set = roleHash(pod.Pod)
		}
		part.Pods = append(part.Pods, pod)
	}
	switch {
	case len(pods) > total:
		return part, fmt.Errorf("pod group %s has %d pods, and %s is %d: Kueue deletes the others", name, len(pods), podconstants.GroupTotalCountAnnotation, total)
	case len(pods) < total && !fast:
		return part, fmt.Errorf("pod group %s has %d of %d pods: Kueue waits for the others before it queues them", name, len(pods), total)
	}
	for i := len(pods); i < total; i++ {
		more := first
		more.Pod = first.DeepCopy()
		more.Name, more.Role, more.Set = fmt.Sprintf("%s-%d", first.Name, i), "another "+strconv.Itoa(i), mainPodSet
		part.Pods = append(part.Pods, more)
	}
	return part, nil
}

// roleHash distinguishes pods of a group by the fields that the scheduler reads (Kueue's utilpod.GenerateRoleHash).
func roleHash(pod *corev1.Pod) string {
	if hash := pod.Annotations[podconstants.RoleHashAnnotation]; hash != "" {
		return hash
	}
	shapes := func(containers []corev1.Container) []map[string]any {
		var all []map[string]any
		for _, c := range containers {
			all = append(all, map[string]any{"resources": map[string]any{"requests": c.Resources.Requests}, "ports": c.Ports})
		}
		return all
	}
	spec := &pod.Spec
	shape := map[string]any{
		"initContainers": shapes(spec.InitContainers), "containers": shapes(spec.Containers), "nodeSelector": spec.NodeSelector,
		"affinity": spec.Affinity, "tolerations": spec.Tolerations, "runtimeClassName": spec.RuntimeClassName, "priority": spec.Priority,
		"topologySpreadConstraints": spec.TopologySpreadConstraints, "overhead": spec.Overhead, "resourceClaims": spec.ResourceClaims,
	}
	if spec.Resources != nil {
		shape["resources"] = spec.Resources.Requests
	}
	text, err := json.Marshal(map[string]any{"spec": shape})
	if err != nil { // data that was decoded from JSON can be encoded
		panic(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))[:8]
}

func (s *Set) job(object *unstructured.Unstructured) ([]forecast.Job, error) {
	var job batchv1.Job
	if err := decode(object, &job); err != nil {
		return nil, err
	}
	if _, err := podsOfJob(&job.Spec); err != nil {
		return nil, err
	}
	if err := finite(&job); err != nil {
		return nil, err
	}
	read := forecast.OfBatchJob(&job)
	if by := job.Spec.ManagedBy; by != nil && *by != batchv1.JobControllerName {
		read.Approximate = append(read.Approximate, "its pods are created by "+*by+" (spec.managedBy), if at all")
	}
	return []forecast.Job{read}, nil
}

// finite checks the parts of the API server's validation of Jobs that a forecast depends on.
func finite(job *batchv1.Job) error {
	if isIndexed(&job.Spec) && job.Spec.Completions == nil {
		return fmt.Errorf("spec.completions is missing, which an Indexed Job needs")
	}
	return nil
}

// cronJob reads one run of a CronJob, as if its scheduled time had come.
func (s *Set) cronJob(object *unstructured.Unstructured) ([]forecast.Job, error) {
	var cron batchv1.CronJob
	if err := decode(object, &cron); err != nil {
		return nil, err
	}
	run := batchv1.Job{ObjectMeta: *cron.Spec.JobTemplate.ObjectMeta.DeepCopy(), Spec: *cron.Spec.JobTemplate.Spec.DeepCopy()}
	run.Namespace, run.Name = cron.Namespace, cron.Name
	if _, err := podsOfJob(&run.Spec); err != nil {
		return nil, err
	}
	job := forecast.OfBatchJob(&run)
	job.Noun = "CronJob"
	// Earlier runs continue beside it, unless it replaces them.
	job.Grows = cron.Spec.ConcurrencyPolicy != batchv1.ReplaceConcurrent
	if isTrue(cron.Spec.Suspend) {
		job.Suspended = true
		job.QueueIn("")
	} else {
		job.Approximate = append(job.Approximate, fmt.Sprintf("it runs at its scheduled times (%s), on the cluster as it is then; this is about a run that starts now", cron.Spec.Schedule))
	}
	return []forecast.Job{job}, nil
}

func (s *Set) replicationController(object *unstructured.Unstructured) ([]forecast.Job, error) {
	var controller corev1.ReplicationController
	if err := decode(object, &controller); err != nil {
		return nil, err
	}
	if controller.Spec.Template == nil {
		return nil, fmt.Errorf("spec.template is missing")
	}
	count, err := counted("spec.replicas", controller.Spec.Replicas, 1)
	if err != nil {
		return nil, err
	}
	job, err := podByPod("ReplicationController", controller.ObjectMeta, podSet{name: mainPodSet, count: count, template: *controller.Spec.Template})
	if len(controller.Spec.Selector) == 0 { // the API server's default
		controller.Spec.Selector = controller.Spec.Template.Labels
	}
	job.ReplicationControllers = []*corev1.ReplicationController{&controller}
	return []forecast.Job{job}, err
}
