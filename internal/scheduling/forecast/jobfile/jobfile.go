// Package jobfile reads what a forecast can be asked about: Kubernetes Jobs and Pods, SkyPilot's task files, and short
// descriptions of jobs as data.elastic_forecast takes them. Files come from anywhere: what it does not know it refuses,
// naming the file and the document, and no file makes it allocate more than its own size and a bounded number of pods.
package jobfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduling/forecast"
	"github.com/elastic-training/terraform-provider-elastic/internal/task"
	"github.com/elastic-training/terraform-provider-elastic/internal/task/skypilot"
)

const (
	// MaxBytes of a file is more than any manifest has that an API server would take.
	MaxBytes = 4 << 20
	// MaxPods of one job.
	MaxPods = 10_000
)

// description is a job as data.elastic_forecast takes it.
type description struct {
	Name          string `json:"name"`
	Namespace     string `json:"namespace,omitempty"`
	Queue         string `json:"queue,omitempty"`
	PriorityClass string `json:"priority_class,omitempty"`
	Pods          []struct {
		Name              string                       `json:"name"`
		Count             *int                         `json:"count,omitempty"`
		Min               *int                         `json:"min,omitempty"`
		Follows           bool                         `json:"follows,omitempty"`
		Requests          map[string]resource.Quantity `json:"requests"`
		PriorityClassName string                       `json:"priority_class_name,omitempty"`
		Labels            map[string]string            `json:"labels,omitempty"`
		NodeSelector      map[string]string            `json:"node_selector,omitempty"`
		Tolerations       []corev1.Toleration          `json:"tolerations,omitempty"`
	} `json:"pods"`
}

// Read reads the jobs of a file, in their order. namespace is that of jobs which name none. flavors are the node labels
// among which a queue chooses, for the accelerators of SkyPilot's tasks; see task.Given.
func Read(file string, text []byte, namespace string, flavors func(namespace, queue string) []map[string]string) ([]forecast.Job, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("%s: %d bytes are more than the %d of the largest file that is read", file, len(text), MaxBytes)
	}
	var jobs []forecast.Job
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for number := 1; ; number++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		where := file
		if number > 1 {
			where = fmt.Sprintf("%s, document %d", file, number)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", where, err)
		}
		if len(bytes.TrimSpace(document)) == 0 {
			continue
		}
		job, err := read(file, document, namespace, flavors)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", where, err)
		}
		jobs = append(jobs, job)
	}
	if len(jobs) == 0 {
		return nil, fmt.Errorf("%s: there is no job in it", file)
	}
	return jobs, nil
}

// read reads one document, by what it says it is.
func read(file string, document []byte, namespace string, flavors func(namespace, queue string) []map[string]string) (forecast.Job, error) {
	var head struct {
		metav1.TypeMeta `json:",inline"`
		Pods            any `json:"pods"`
	}
	if err := yaml.Unmarshal(document, &head); err != nil {
		return forecast.Job{}, fmt.Errorf("not YAML, or not a job: %w", err)
	}
	switch {
	case head.Kind == "Job" && head.APIVersion == "batch/v1":
		return batchJob(document, namespace)
	case head.Kind == "Pod" && head.APIVersion == "v1":
		return pod(document, namespace)
	case head.Kind != "" || head.APIVersion != "":
		return forecast.Job{}, fmt.Errorf("it is a %s of %s; a forecast takes a Job of batch/v1, a Pod of v1, a SkyPilot task, or a description with name and pods", head.Kind, head.APIVersion)
	case head.Pods != nil:
		return described(document, namespace)
	default:
		return skyPilot(file, document, namespace, flavors)
	}
}

func batchJob(document []byte, namespace string) (forecast.Job, error) {
	var job batchv1.Job
	if err := yaml.UnmarshalStrict(document, &job); err != nil {
		return forecast.Job{}, fmt.Errorf("not a Job: %w", err)
	}
	if p := job.Spec.Parallelism; p != nil && (*p > MaxPods || *p < 0) {
		return forecast.Job{}, fmt.Errorf("spec.parallelism is %d; at most %d pods are forecast", *p, MaxPods)
	}
	if c := job.Spec.Completions; c != nil && *c < 0 {
		return forecast.Job{}, fmt.Errorf("spec.completions is %d", *c)
	}
	if err := named(&job.ObjectMeta, namespace); err != nil {
		return forecast.Job{}, err
	}
	return forecast.OfBatchJob(&job), nil
}

func pod(document []byte, namespace string) (forecast.Job, error) {
	var pod corev1.Pod
	if err := yaml.UnmarshalStrict(document, &pod); err != nil {
		return forecast.Job{}, fmt.Errorf("not a Pod: %w", err)
	}
	if err := named(&pod.ObjectMeta, namespace); err != nil {
		return forecast.Job{}, err
	}
	pod.Spec.NodeName, pod.Status = "", corev1.PodStatus{} // as it was before it ran
	return forecast.OfPod(&pod), nil
}

// named gives an object the namespace that it leaves out, and refuses one without a name.
func named(meta *metav1.ObjectMeta, namespace string) error {
	if meta.Namespace == "" {
		meta.Namespace = namespace
	}
	if meta.Name == "" {
		meta.Name = strings.TrimSuffix(meta.GenerateName, "-")
	}
	if meta.Name == "" {
		return errors.New("metadata.name is missing")
	}
	return nil
}

func described(document []byte, namespace string) (forecast.Job, error) {
	var d description
	if err := yaml.UnmarshalStrict(document, &d); err != nil {
		return forecast.Job{}, fmt.Errorf("not a description of a job: %w", err)
	}
	if d.Name == "" {
		return forecast.Job{}, errors.New("name is missing")
	}
	if d.Namespace == "" {
		d.Namespace = namespace
	}
	var groups []forecast.Group
	all, seen := 0, map[string]bool{}
	for i, p := range d.Pods {
		group := forecast.Group{Name: p.Name, Count: 1, Follows: p.Follows}
		if p.Count != nil {
			group.Count = *p.Count
		}
		group.Least = group.Count
		if p.Min != nil {
			group.Least = *p.Min
		}
		switch {
		case group.Name == "" || strings.ContainsAny(group.Name, " \t\n"):
			return forecast.Job{}, fmt.Errorf("pods[%d].name is %q; give it a word", i, group.Name)
		case seen[group.Name]:
			return forecast.Job{}, fmt.Errorf("pods[%d].name is %q, as that of others", i, group.Name)
		case group.Count < 1 || group.Count > MaxPods || all+group.Count > MaxPods:
			return forecast.Job{}, fmt.Errorf("pods[%d].count is %d; a job has 1 to %d pods", i, group.Count, MaxPods)
		case group.Least < 0 || group.Least > group.Count:
			return forecast.Job{}, fmt.Errorf("pods[%d].min is %d, and count %d", i, group.Least, group.Count)
		}
		seen[group.Name] = true
		all += group.Count
		requests := corev1.ResourceList{}
		for name, amount := range p.Requests {
			if amount.Sign() < 0 {
				return forecast.Job{}, fmt.Errorf("pods[%d].requests: %s is negative", i, name)
			}
			requests[corev1.ResourceName(name)] = amount
		}
		group.Template = corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: p.Labels},
			Spec: corev1.PodSpec{
				PriorityClassName: p.PriorityClassName, NodeSelector: p.NodeSelector, Tolerations: p.Tolerations,
				Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: requests}}},
			},
		}
		groups = append(groups, group)
	}
	if len(groups) == 0 {
		return forecast.Job{}, errors.New("pods is empty")
	}
	return forecast.OfGroups(d.Namespace, d.Name, d.Queue, d.PriorityClass, groups), nil
}

// skyPilot reads a task file; where it has no name, it is called as its file.
func skyPilot(file string, document []byte, namespace string, flavors func(namespace, queue string) []map[string]string) (forecast.Job, error) {
	t, _, err := skypilot.Parse(file, document, skypilot.Given{AnySecret: true})
	if err != nil {
		return forecast.Job{}, err
	}
	if t.Name == "" {
		t.Name = strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	}
	t.Namespace = namespace
	if t.Image == "" {
		t.Image = task.DefaultImage
	}
	t.TrainerImage = task.DefaultTrainerImage("")
	if problems := t.Problems(); len(problems) > 0 {
		return forecast.Job{}, fmt.Errorf("%s", problems[0])
	}
	if t.NumNodes > MaxPods {
		return forecast.Job{}, fmt.Errorf("num_nodes is %d; at most %d pods are forecast", t.NumNodes, MaxPods)
	}
	var labels []map[string]string
	if t.Queue != "" {
		labels = flavors(t.Namespace, t.Queue)
	}
	return forecast.OfTask(t, labels)
}
