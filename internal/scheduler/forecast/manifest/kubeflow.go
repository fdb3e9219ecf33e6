package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
)

// runPolicy is the part of kubeflow.org's RunPolicy that affects pods.
type runPolicy struct {
	Suspend          *bool `json:"suspend,omitempty"`
	SchedulingPolicy *struct {
		PriorityClass string `json:"priorityClass,omitempty"`
	} `json:"schedulingPolicy,omitempty"`
}

type replicaSpec struct {
	Replicas      *int32                 `json:"replicas,omitempty"`
	Template      corev1.PodTemplateSpec `json:"template"`
	RestartPolicy string                 `json:"restartPolicy,omitempty"`
}

const kubeflowLabels = "training.kubeflow.org/"

// kubeflowJob reads a job of the training operator, whose replicas are in a field, with their types in Kueue's order.
func kubeflowJob(field string, types ...string) reader {
	return func(_ *Set, object *unstructured.Unstructured) ([]forecast.Job, error) {
		var job struct {
			Spec struct {
				RunPolicy runPolicy `json:"runPolicy,omitempty"`
			} `json:"spec"`
		}
		if err := decodePart(object, &job); err != nil {
			return nil, err
		}
		replicas, err := replicasOf(object, field, types)
		if err != nil {
			return nil, err
		}
		of := meta(object)
		var sets []podSet
		for _, kind := range types {
			spec := replicas[kind]
			if spec == nil {
				continue
			}
			count, err := counted("spec."+field+"."+kind+".replicas", spec.Replicas, 1)
			if err != nil {
				return nil, err
			}
			role := strings.ToLower(kind)
			sets = append(sets, podSet{name: role, count: count, template: spec.Template, finish: func(pod *corev1.Pod, i int) {
				named(pod, fmt.Sprintf("%s-%s-%d", of.Name, role, i))
				maps.Copy(pod.Labels, kubeflowPods(of.Name, strings.ToLower(object.GetKind())+"-controller"))
				pod.Labels[kubeflowLabels+"replica-type"], pod.Labels[kubeflowLabels+"replica-index"] = role, strconv.Itoa(i)
				if role == "master" || role == "chief" {
					pod.Labels[kubeflowLabels+"job-role"] = "master"
				}
				setRestartPolicy(pod, spec.RestartPolicy)
			}})
		}
		if len(sets) == 0 {
			return nil, fmt.Errorf("spec.%s is empty", field)
		}
		read, err := workload(object.GetKind(), of, sets)
		setPolicy(&read, job.Spec.RunPolicy)
		return []forecast.Job{read}, err
	}
}

// replicasOf are the replicas of each type. The spelling of types may be in any case.
func replicasOf(object *unstructured.Unstructured, field string, types []string) (map[string]*replicaSpec, error) {
	given, _, err := unstructured.NestedMap(object.Object, "spec", field)
	if err != nil {
		return nil, fmt.Errorf("spec.%s: %w", field, err)
	}
	replicas := map[string]*replicaSpec{}
	for name, value := range given {
		at := slices.IndexFunc(types, func(t string) bool { return strings.EqualFold(t, name) })
		if at < 0 {
			return nil, fmt.Errorf("spec.%s has %q; it takes %s", field, name, strings.Join(types, ", "))
		}
		part, isMap := value.(map[string]any)
		if !isMap {
			return nil, fmt.Errorf("spec.%s.%s is no object", field, name)
		}
		var spec replicaSpec
		if err := decodePart(&unstructured.Unstructured{Object: part}, &spec); err != nil {
			return nil, fmt.Errorf("spec.%s.%s: %w", field, name, err)
		}
		replicas[types[at]] = &spec
	}
	return replicas, nil
}

// mpiJob reads an MPIJob: a launcher, in a Job, and workers, which are created first.
func (s *Set) mpiJob(object *unstructured.Unstructured) ([]forecast.Job, error) {
	var job struct {
		Spec struct {
			RunPolicy              runPolicy `json:"runPolicy,omitempty"`
			LauncherCreationPolicy string    `json:"launcherCreationPolicy,omitempty"`
			RunLauncherAsWorker    *bool     `json:"runLauncherAsWorker,omitempty"`
		} `json:"spec"`
	}
	if err := decodePart(object, &job); err != nil {
		return nil, err
	}
	replicas, err := replicasOf(object, "mpiReplicaSpecs", []string{"Launcher", "Worker"})
	if err != nil {
		return nil, err
	}
	launcher, worker := replicas["Launcher"], replicas["Worker"]
	if launcher == nil {
		return nil, fmt.Errorf("spec.mpiReplicaSpecs has no Launcher")
	}
	of := meta(object)
	var sets []podSet
	wave := 0
	if worker != nil {
		count, err := counted("spec.mpiReplicaSpecs.Worker.replicas", worker.Replicas, 0)
		if err != nil {
			return nil, err
		}
		first := 0
		if isTrue(job.Spec.RunLauncherAsWorker) {
			first = 1
		}
		if count > 0 {
			sets = append(sets, podSet{name: "worker", count: count, template: worker.Template, finish: func(pod *corev1.Pod, i int) {
				named(pod, fmt.Sprintf("%s-worker-%d", of.Name, i))
				labelMPI(pod, of, "worker")
				pod.Labels[kubeflowLabels+"replica-index"] = strconv.Itoa(first + i)
				setRestartPolicy(pod, worker.RestartPolicy)
			}})
		}
		if job.Spec.LauncherCreationPolicy == "WaitForWorkersReady" {
			wave = 1
		}
	}
	sets = append(sets, podSet{name: "launcher", count: 1, wave: wave, template: launcher.Template, finish: func(pod *corev1.Pod, _ int) {
		pod.Name = of.Name + "-launcher"
		labelMPI(pod, of, "launcher")
		labelsOfJob(pod, of.Name+"-launcher", 0, false)
		if isTrue(job.Spec.RunLauncherAsWorker) {
			pod.Labels[kubeflowLabels+"replica-index"] = "0"
		}
		setRestartPolicy(pod, launcher.RestartPolicy)
	}})
	read, err := workload("MPIJob", of, sets, "launcher", "worker")
	setPolicy(&read, job.Spec.RunPolicy)
	read.Services = []*corev1.Service{serviceOver(of, of.Name, kubeflowPods(of.Name, mpiOperator))} // newJobService
	if len(read.Stages) > 0 && read.Stages[0][0].PriorityClassName == "" {
		read.Stages[0][0].PriorityClassName = launcher.Template.Spec.PriorityClassName // before that of the workers
	}
	return []forecast.Job{read}, err
}

func labelMPI(pod *corev1.Pod, of metav1.ObjectMeta, role string) {
	maps.Copy(pod.Labels, kubeflowPods(of.Name, mpiOperator))
	pod.Labels[kubeflowLabels+"job-role"] = role
	pod.Spec.Hostname, pod.Spec.Subdomain = pod.Name, of.Name
}

const mpiOperator = "mpi-operator"

// kubeflowPods are the labels that all pods of a job have.
func kubeflowPods(job, operator string) map[string]string {
	return map[string]string{kubeflowLabels + "job-name": job, kubeflowLabels + "operator-name": operator}
}

// setRestartPolicy replaces the template's, as the operators do.
func setRestartPolicy(pod *corev1.Pod, policy string) {
	switch policy {
	case "":
	case "ExitCode":
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	default:
		pod.Spec.RestartPolicy = corev1.RestartPolicy(policy)
	}
}

func setPolicy(job *forecast.Job, policy runPolicy) {
	job.Suspended = isTrue(policy.Suspend)
	if policy.SchedulingPolicy != nil && len(job.Stages) > 0 {
		job.Stages[0][0].PriorityClassName = policy.SchedulingPolicy.PriorityClass
	}
}
