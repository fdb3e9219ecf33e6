package manifest

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kueueconstants "sigs.k8s.io/kueue/pkg/constants"
	controllerconstants "sigs.k8s.io/kueue/pkg/controller/constants"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
)

const appWrapper = "AppWrapper"

// appWrapper reads the pods of all objects in an AppWrapper, which Kueue admits together as one Workload.
func (s *Set) appWrapper(object *unstructured.Unstructured) ([]forecast.Job, error) {
	var wrapper struct {
		Spec struct {
			Suspend    bool `json:"suspend,omitempty"`
			Components []struct {
				Template map[string]any `json:"template"`
			} `json:"components"`
		} `json:"spec"`
	}
	if err := decodePart(object, &wrapper); err != nil {
		return nil, err
	}
	of := meta(object)
	job := forecast.Job{Noun: appWrapper, Namespace: of.Namespace, Name: of.Name, Suspended: wrapper.Spec.Suspend}
	part := forecast.Part{Queue: of.Labels[controllerconstants.QueueLabel], Class: of.Labels[controllerconstants.WorkloadPriorityClassLabel], GatedBy: of.Annotations[kueueconstants.AdmissionGatedByAnnotation]}
	for i, component := range wrapper.Spec.Components {
		wrapped, err := s.component(of.Namespace, component.Template)
		if err != nil {
			return nil, fmt.Errorf("spec.components[%d]: %w", i, err)
		}
		for _, object := range wrapped.Objects {
			if service, ok := object.(*corev1.Service); ok {
				job.Services = append(job.Services, service)
			}
		}
		for _, inner := range wrapped.Jobs {
			job.Approximate = append(job.Approximate, inner.Approximate...)
			job.Services, job.Claims = append(job.Services, inner.Services...), append(job.Claims, inner.Claims...)
			job.ReplicaSets, job.StatefulSets = append(job.ReplicaSets, inner.ReplicaSets...), append(job.StatefulSets, inner.StatefulSets...)
			job.ReplicationControllers = append(job.ReplicationControllers, inner.ReplicationControllers...)
			sets := map[string]string{}
			for _, pod := range podsOf(inner) {
				if len(part.Pods) == MaxPods {
					return nil, tooMany(MaxPods + 1)
				}
				// Kueue numbers the pod sets of an AppWrapper consecutively.
				if _, known := sets[pod.Set]; !known {
					sets[pod.Set] = of.Name + "-" + strconv.Itoa(len(part.Sets))
					part.Sets = append(part.Sets, setName(sets[pod.Set]))
				}
				pod.Set = setName(sets[pod.Set])
				if len(wrapper.Spec.Components) > 1 {
					word, rest, _ := strings.Cut(pod.Role, " ")
					if word == "the" {
						word, rest = "pod", ""
					}
					pod.Role = strings.TrimSpace(fmt.Sprintf("%s-%s %s", inner.Name, word, rest))
				}
				pod.Labels = maps.Clone(pod.Labels)
				pod.Labels = withValue(pod.Labels, "workload.codeflare.dev/appwrapper", of.Name)
				part.Pods = append(part.Pods, pod)
			}
		}
	}
	if len(part.Pods) == 0 {
		return nil, fmt.Errorf("none of spec.components creates pods")
	}
	job.Stages = []forecast.Stage{{part}}
	return []forecast.Job{job}, nil
}

// component reads an object in an AppWrapper. The wrapper is in the queue, not the object.
func (s *Set) component(namespace string, template map[string]any) (Contents, error) {
	inner := &unstructured.Unstructured{Object: template}
	if inner.GetKind() == "" || inner.GetKind() == appWrapper {
		return Contents{}, fmt.Errorf("template.kind is %q", inner.GetKind())
	}
	if inner.GetNamespace() == "" {
		inner.SetNamespace(namespace)
	}
	labels := inner.GetLabels()
	delete(labels, controllerconstants.QueueLabel)
	inner.SetLabels(labels)
	return s.Read(inner)
}

// podsOf are all pods of a job, in the order in which they are created.
func podsOf(job forecast.Job) []forecast.Pod {
	var pods []forecast.Pod
	for _, stage := range job.Stages {
		for _, part := range stage {
			pods = append(pods, part.Pods...)
		}
	}
	return pods
}
