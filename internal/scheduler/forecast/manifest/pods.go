package manifest

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	kueueconstants "sigs.k8s.io/kueue/pkg/constants"
	controllerconstants "sigs.k8s.io/kueue/pkg/controller/constants"
	podconstants "sigs.k8s.io/kueue/pkg/controller/jobs/pod/constants"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
)

// podSet is a set of pods that a controller creates from one template, and that is one pod set of a Workload.
type podSet struct {
	name     string // of the pod set, as Kueue names it
	role     string // of the pods in an answer; the pod set's name where it is empty
	count    int
	template corev1.PodTemplateSpec
	wave     int
	ends     bool // they have to end before the next wave is created
	// uncounted is the init container that the controller adds to the pods and Kueue does not count.
	uncounted string
	// finish completes pod number i as its controller does: with its own labels, and with its name or the beginning of it.
	finish func(pod *corev1.Pod, i int)
}

// pods are the pods of a pod set.
func (s podSet) pods(namespace, owner string) []forecast.Pod {
	role := s.role
	if role == "" {
		role = s.name
	}
	pods := make([]forecast.Pod, 0, s.count)
	for i := range s.count {
		pod := forecast.Pod{Role: role, Set: s.name, Wave: s.wave, Ends: s.ends, Uncounted: s.uncounted, Template: &s.template, Pod: podOf(s.template, namespace, owner+"-"+strconv.Itoa(i))}
		if s.count > 1 {
			pod.Role += " " + strconv.Itoa(i)
		}
		pod.GenerateName = owner + "-"
		if s.finish != nil {
			s.finish(pod.Pod, i)
		}
		pods = append(pods, pod)
	}
	if s.count == 1 && role == mainPodSet {
		pods[0].Role = "the pod"
	} else if role == mainPodSet {
		for i := range pods {
			pods[i].Role = "pod " + strconv.Itoa(i)
		}
	}
	return pods
}

const mainPodSet = string(kueue.DefaultPodSetName)

func podOf(template corev1.PodTemplateSpec, namespace, name string) *corev1.Pod {
	template = *template.DeepCopy()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: template.Labels, Annotations: template.Annotations},
		Spec:       template.Spec,
	}
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	return pod
}

// workload is a job whose pods Kueue admits together, in one Workload with the queue and the class of the object. order
// is the order of its pod sets, if that differs from the order of creation.
func workload(kind string, of metav1.ObjectMeta, sets []podSet, order ...string) (forecast.Job, error) {
	part := forecast.Part{Queue: of.Labels[controllerconstants.QueueLabel], Class: of.Labels[controllerconstants.WorkloadPriorityClassLabel], GatedBy: of.Annotations[kueueconstants.AdmissionGatedByAnnotation], Sets: order}
	roles := map[string]bool{}
	all := 0
	for _, set := range sets {
		if all += set.count; all > MaxPods {
			return forecast.Job{}, tooMany(all)
		}
		if roles[set.name] {
			return forecast.Job{}, fmt.Errorf("two groups of pods are named %q", set.name)
		}
		roles[set.name] = true
		part.Pods = append(part.Pods, set.pods(of.Namespace, of.Name)...)
	}
	return forecast.Job{Noun: kind, Namespace: of.Namespace, Name: of.Name, Stages: []forecast.Stage{{part}}}, nil
}

func tooMany(n int) error {
	return fmt.Errorf("it has %d pods or more; at most %d are forecast", n, MaxPods)
}

// podByPod is a job whose pods Kueue admits one by one, by the queue and class in their labels.
func podByPod(kind string, of metav1.ObjectMeta, set podSet) (forecast.Job, error) {
	if set.count > MaxPods {
		return forecast.Job{}, tooMany(set.count)
	}
	job := forecast.Job{Noun: kind, Namespace: of.Namespace, Name: of.Name}
	pods := set.pods(of.Namespace, of.Name)
	if set.template.Labels[controllerconstants.QueueLabel] == "" {
		job.Stages = []forecast.Stage{{{Pods: pods}}}
		return job, nil
	}
	if group := set.template.Labels[podconstants.GroupNameLabel]; group != "" {
		part, err := groupPart(group, pods)
		job.Stages = []forecast.Stage{{part}}
		return job, err
	}
	var stage forecast.Stage
	for _, pod := range pods {
		stage = append(stage, forecast.Part{Pods: []forecast.Pod{pod}, Queue: pod.Labels[controllerconstants.QueueLabel], Class: pod.Labels[controllerconstants.WorkloadPriorityClassLabel], GatedBy: pod.Annotations[kueueconstants.AdmissionGatedByAnnotation]})
	}
	job.Stages = []forecast.Stage{stage}
	return job, nil
}

// named gives a pod a name that its controller does not leave to the API server to complete.
func named(pod *corev1.Pod, name string) { pod.Name, pod.GenerateName = name, "" }

// labelsOfJob are the labels, and the name, that the Job controller gives to pods. A UID is not known before the Job is created.
func labelsOfJob(pod *corev1.Pod, job string, index int, indexed bool) {
	pod.GenerateName = job + "-"
	uid := "planned-" + job
	maps.Copy(pod.Labels, map[string]string{
		batchv1.JobNameLabel: job, "job-name": job, batchv1.ControllerUidLabel: uid, "controller-uid": uid,
	})
	if indexed {
		pod.GenerateName += strconv.Itoa(index) + "-"
		pod.Labels[batchv1.JobCompletionIndexAnnotation] = strconv.Itoa(index)
		pod.Annotations = withValue(pod.Annotations, batchv1.JobCompletionIndexAnnotation, strconv.Itoa(index))
	}
}

// serviceOver is the headless Service over pods by which a controller gives them names. Like every Service it spreads them.
func serviceOver(of metav1.ObjectMeta, name string, pods map[string]string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: name},
		Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: pods},
	}
}

func withValue(of map[string]string, key, value string) map[string]string {
	if of == nil {
		of = map[string]string{}
	}
	of[key] = value
	return of
}

// podsOfJob is the number of pods of a Job that run at the same time.
func podsOfJob(spec *batchv1.JobSpec) (int, error) {
	pods, err := counted("spec.parallelism", spec.Parallelism, 1)
	if err != nil {
		return 0, err
	}
	if c := spec.Completions; c != nil {
		if *c < 0 {
			return 0, fmt.Errorf("spec.completions is %d", *c)
		}
		pods = min(pods, int(*c))
	}
	return pods, nil
}

func isIndexed(spec *batchv1.JobSpec) bool {
	return spec.CompletionMode != nil && *spec.CompletionMode == batchv1.IndexedCompletion
}

// setName is the form of a name that Kueue uses for pod sets.
func setName(name string) string { return strings.ToLower(name) }

func isTrue(value *bool) bool { return value != nil && *value }
