// Package manifest reads Kubernetes objects as the jobs of a forecast: which pods the controller of an object creates,
// in which order, and how Kueue counts them. It is pure, and follows the sources of the controllers: Job, JobSet,
// Kubeflow Trainer, training operator, MPI operator, KubeRay, LeaderWorkerSet and AppWrapper, and the integrations of
// Kueue v0.19. For kinds without a Go module here it decodes the fields that affect pods and ignores the others; it
// reads pod templates strictly. It reads an unknown kind with pod templates approximately, and refuses every other kind
// by name.
//
// Objects come from untrusted sources: none makes it allocate more than its own size and MaxPods pods.
package manifest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
)

// MaxPods limits the pods of one object.
const MaxPods = 10_000

// Given is the context in which objects are read.
type Given struct {
	// Namespace is the namespace of objects that name none.
	Namespace string
	// Nodes are the cluster's: a DaemonSet has a pod on each eligible node.
	Nodes []*corev1.Node
	// Runtime reads a TrainingRuntime, or a ClusterTrainingRuntime (without a namespace), from the cluster; nil where no
	// cluster is read.
	Runtime func(kind, namespace, name string) (*unstructured.Unstructured, error)
}

// Contents is the result of reading objects.
type Contents struct {
	Jobs []forecast.Job
	// Objects create no pods but affect them, as a PriorityClass does: they are in the cluster when the jobs start.
	// They are of the Go types of Kubernetes and of Kueue's v1beta2.
	Objects []runtime.Object
}

// Set is the objects of one file or plan, which may refer to each other.
type Set struct {
	given    Given
	groups   map[objectKey][]*unstructured.Unstructured // pods, by their pod group
	runtimes map[objectKey]*unstructured.Unstructured
	read     map[objectKey]bool // pod groups that were read
}

// objectKey names an object; the namespace of a cluster-scoped object is empty.
type objectKey struct{ kind, namespace, name string }

// NewSet prepares objects for Read. It does not change them.
func NewSet(objects []*unstructured.Unstructured, given Given) *Set {
	s := &Set{
		given: given, groups: map[objectKey][]*unstructured.Unstructured{}, runtimes: map[objectKey]*unstructured.Unstructured{},
		read: map[objectKey]bool{},
	}
	for _, object := range objects {
		switch of := object.GroupVersionKind().GroupKind(); {
		case of == schema.GroupKind{Kind: "Pod"}:
			if key, grouped := s.groupOf(object); grouped {
				s.groups[key] = append(s.groups[key], object)
			}
		case of.Group == TrainerGroup && of.Kind == "TrainingRuntime":
			s.runtimes[objectKey{of.Kind, s.namespaceOf(object), object.GetName()}] = object
		case of.Group == TrainerGroup && of.Kind == "ClusterTrainingRuntime":
			s.runtimes[objectKey{of.Kind, "", object.GetName()}] = object
		}
	}
	return s
}

func (s *Set) namespaceOf(object *unstructured.Unstructured) string {
	if namespace := object.GetNamespace(); namespace != "" {
		return namespace
	}
	return s.given.Namespace
}

// Read reads one of the objects. A pod group is read with the first of its pods.
func (s *Set) Read(object *unstructured.Unstructured) (Contents, error) {
	kind := object.GroupVersionKind().GroupKind()
	object = object.DeepCopy()
	object.SetName(nameOf(object))
	if object.GetName() == "" {
		return Contents{}, errors.New("metadata.name is missing")
	}
	if create := dependencies[kind]; create != nil {
		return s.dependency(object, create())
	}
	if ignored(kind) {
		return Contents{}, nil
	}
	object.SetNamespace(s.namespaceOf(object))
	read := kinds[kind]
	if read == nil {
		read = (*Set).generic
	}
	jobs, err := read(s, object)
	if err != nil {
		return Contents{}, fmt.Errorf("%s %s: %w", kind.Kind, object.GetName(), err)
	}
	for i := range jobs {
		if jobs[i].Object == nil {
			jobs[i].Object = object
		}
		if err := check(jobs[i]); err != nil {
			return Contents{}, fmt.Errorf("%s %s: %w", kind.Kind, object.GetName(), err)
		}
	}
	return Contents{Jobs: jobs}, nil
}

// nameOf is the name of an object, or the prefix of the one that the API server generates.
func nameOf(object *unstructured.Unstructured) string {
	return cmp.Or(object.GetName(), strings.TrimSuffix(object.GetGenerateName(), "-"))
}

// check refuses pods that no API server would accept for reasons that a forecast could not name.
func check(job forecast.Job) error {
	for _, stage := range job.Stages {
		for _, part := range stage {
			for _, pod := range part.Pods {
				if len(pod.Spec.Containers) == 0 {
					return fmt.Errorf("%s has no containers", pod.Role)
				}
				for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
					for name, amount := range container.Resources.Requests {
						if amount.Sign() < 0 {
							return fmt.Errorf("container %q requests %s of %s", container.Name, amount.String(), name)
						}
					}
				}
			}
		}
	}
	return nil
}

// decode reads an object into a type of Kubernetes that has all fields.
func decode(object *unstructured.Unstructured, into any) error {
	unknown, err := decodeFields(object.Object, into)
	return errors.Join(append(unknown, err)...)
}

// inTemplate matches the path of a field in a pod template.
var inTemplate = regexp.MustCompile(`emplate\.(spec|metadata)\.`)

// decodePart reads an object into a type that has only some of its fields. Unknown fields below a pod template are
// errors nevertheless: pod templates are of types of Kubernetes, and the fields are most likely misspelt.
func decodePart(object *unstructured.Unstructured, into any) error {
	unknown, err := decodeFields(object.Object, into)
	unknown = slices.DeleteFunc(unknown, func(field error) bool { return !inTemplate.MatchString(field.Error()) })
	return errors.Join(append(unknown, err)...)
}

// decodeFields reads fields into a Go type, and returns an error for each that the type does not have.
func decodeFields(fields map[string]any, into any) (unknown []error, err error) {
	text, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	return kjson.UnmarshalStrict(text, into)
}

// counted is a number of pods that an object specifies.
func counted(field string, n *int32, standard int) (int, error) {
	if n == nil {
		return standard, nil
	}
	if *n < 0 || *n > MaxPods {
		return 0, fmt.Errorf("%s is %d; a forecast takes 0 to %d pods", field, *n, MaxPods)
	}
	return int(*n), nil
}

// meta is the metadata of an object.
func meta(object *unstructured.Unstructured) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: object.GetNamespace(), Name: object.GetName(), Labels: object.GetLabels(), Annotations: object.GetAnnotations(),
	}
}
