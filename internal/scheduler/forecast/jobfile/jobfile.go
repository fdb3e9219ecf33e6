// Package jobfile reads the input of a forecast: objects of Kubernetes that create pods (package manifest), SkyPilot's
// task files, and short descriptions of jobs in the format of data.elastic_forecast. Files come from untrusted sources:
// the package refuses unknown content with the names of file and document, and no file makes it allocate more than its
// own size and a bounded number of pods.
package jobfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/task"
	"github.com/elastic-training/terraform-provider-elastic/internal/migrate/skypilot"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/manifest"
)

const (
	// MaxBytes limits a file. No manifest that an API server accepts is larger.
	MaxBytes = 4 << 20
	// MaxPods limits the pods of one job.
	MaxPods = manifest.MaxPods
)

// description is a job in the format of data.elastic_forecast.
type description struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
	Queue     struct {
		Name                  string `json:"name"`
		WorkloadPriorityClass string `json:"workload_priority_class,omitempty"`
	} `json:"queue,omitzero"`
	Pods []struct {
		Name              string                       `json:"name"`
		Count             *int                         `json:"count,omitempty"`
		Min               *int                         `json:"min,omitempty"`
		Follows           bool                         `json:"starts_after_previous,omitempty"`
		Requests          map[string]resource.Quantity `json:"requests"`
		PriorityClassName string                       `json:"priority_class_name,omitempty"`
		Labels            map[string]string            `json:"labels,omitempty"`
		NodeSelector      map[string]string            `json:"node_selector,omitempty"`
		Tolerations       []corev1.Toleration          `json:"tolerations,omitempty"`
	} `json:"pods"`
}

// Given is the context in which a file is read.
type Given struct {
	manifest.Given
	// Flavors are the node labels among which a queue chooses, for the accelerators of SkyPilot's tasks; see task.Given.
	Flavors func(namespace, queue string) []map[string]string
}

// document is a document of a file: an object of Kubernetes, or another description of a job.
type document struct {
	where  string
	text   []byte
	object *unstructured.Unstructured
}

// isTask reports whether a document is SkyPilot's, which describes no pods.
func (d document) isTask() bool {
	var head map[string]any
	return d.object == nil && yaml.Unmarshal(d.text, &head) == nil && head["pods"] == nil
}

// Read reads the jobs of a file, in their order, and its objects that affect their pods.
func Read(file string, text []byte, given Given) (manifest.Contents, error) {
	var all manifest.Contents
	documents, err := split(file, text)
	if err != nil {
		return all, err
	}
	var objects []*unstructured.Unstructured
	for _, d := range documents {
		if d.object != nil {
			objects = append(objects, d.object)
		}
	}
	set := manifest.NewSet(objects, given.Given)
	if tasks := slices.DeleteFunc(slices.Clone(documents), func(d document) bool { return !d.isTask() }); len(tasks) > 1 {
		return all, fmt.Errorf("%s: a second task begins; SkyPilot would run a pipeline, one task after the other: make a file of each", tasks[1].where)
	}
	for _, d := range documents {
		var contents manifest.Contents
		if d.object != nil {
			contents, err = set.Read(d.object)
		} else {
			contents, err = described(file, d, given)
		}
		if err != nil {
			return all, fmt.Errorf("%s: %w", d.where, err)
		}
		all.Jobs, all.Objects = append(all.Jobs, contents.Jobs...), append(all.Objects, contents.Objects...)
	}
	if len(all.Jobs) == 0 {
		return all, fmt.Errorf("%s: there is no job in it", file)
	}
	return all, nil
}

// split splits a file into its documents, and lists of objects into their items.
func split(file string, text []byte) ([]document, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("%s: %d bytes are more than the %d of the largest file that is read", file, len(text), MaxBytes)
	}
	var all []document
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for number := 1; ; number++ {
		one, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		where := file
		if number > 1 {
			where = fmt.Sprintf("%s, document %d", file, number)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", where, err)
		}
		if isEmpty(one) {
			continue
		}
		objects, err := objectsOf(one)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", where, err)
		}
		if objects == nil {
			all = append(all, document{where: where, text: one})
		}
		for _, object := range objects {
			all = append(all, document{where: where, object: object})
		}
	}
}

// isEmpty reports whether a document consists of comments only, as Helm leaves some.
func isEmpty(document []byte) bool {
	for line := range bytes.Lines(document) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' && !bytes.Equal(line, []byte("---")) {
			return false
		}
	}
	return true
}

// objectsOf are the objects of Kubernetes in a document; nil for a document without a kind.
func objectsOf(text []byte) ([]*unstructured.Unstructured, error) {
	asJSON, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, fmt.Errorf("not YAML, or not a job: %w", err)
	}
	var fields map[string]any
	if err := utiljson.Unmarshal(asJSON, &fields); err != nil {
		return nil, fmt.Errorf("not YAML, or not a job: %w", err)
	}
	object := &unstructured.Unstructured{Object: fields}
	switch {
	case object.GetKind() == "" && object.GetAPIVersion() == "":
		return nil, nil
	case object.GetKind() == "" || object.GetAPIVersion() == "":
		return nil, errors.New("kind or apiVersion is missing")
	case !object.IsList():
		return []*unstructured.Unstructured{object}, nil
	}
	list, err := object.ToList()
	if err != nil {
		return nil, err
	}
	objects := []*unstructured.Unstructured{}
	for i := range list.Items {
		objects = append(objects, &list.Items[i])
	}
	return objects, nil
}

// described reads a document without a kind.
func described(file string, d document, given Given) (manifest.Contents, error) {
	var job forecast.Job
	var err error
	if d.isTask() {
		job, err = skyPilot(file, d.text, given.Namespace, given.Flavors)
	} else {
		job, err = ofDescription(d.text, given.Namespace)
	}
	return manifest.Contents{Jobs: []forecast.Job{job}}, err
}

func ofDescription(document []byte, namespace string) (forecast.Job, error) {
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
	return forecast.OfGroups(d.Namespace, d.Name, d.Queue.Name, d.Queue.WorkloadPriorityClass, groups), nil
}

// skyPilot reads a task file. A task without a name is named after its file.
func skyPilot(file string, document []byte, namespace string, flavors func(namespace, queue string) []map[string]string) (forecast.Job, error) {
	t, _, err := skypilot.Parse(file, document, skypilot.Given{AnySecret: true, AnyEnv: true})
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
