package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	_ "github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob/strategicmerge" // for overrides of runtimes
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
)

// trainJobSpec is the part of trainer.kubeflow.org/v1alpha1 that affects pods, of Kubeflow Trainer 2.0 to 2.3.
type trainJobSpec struct {
	RuntimeRef struct {
		Name string  `json:"name"`
		Kind *string `json:"kind,omitempty"`
	} `json:"runtimeRef"`
	Trainer *struct {
		NumNodes         *int32                       `json:"numNodes,omitempty"`
		ResourcesPerNode *corev1.ResourceRequirements `json:"resourcesPerNode,omitempty"`
	} `json:"trainer,omitempty"`
	// RuntimePatches change the runtime's template, as strategic merge patches of each manager.
	RuntimePatches []struct {
		TrainingRuntimeSpec *struct {
			Template *struct {
				Spec map[string]any `json:"spec,omitempty"`
			} `json:"template,omitempty"`
		} `json:"trainingRuntimeSpec,omitempty"`
	} `json:"runtimePatches,omitempty"`
	// PodTemplateOverrides were the predecessor of RuntimePatches, until Trainer 2.1.
	PodTemplateOverrides []struct {
		TargetJobs []struct {
			Name string `json:"name"`
		} `json:"targetJobs,omitempty"`
		Metadata map[string]any `json:"metadata,omitempty"`
		Spec     map[string]any `json:"spec,omitempty"`
	} `json:"podTemplateOverrides,omitempty"`
	Suspend *bool `json:"suspend,omitempty"`
}

// trainingRuntimeSpec is the runtime from which Kubeflow Trainer builds the JobSet of a TrainJob.
type trainingRuntimeSpec struct {
	MLPolicy *struct {
		NumNodes *int32 `json:"numNodes,omitempty"`
		MPI      *struct {
			RunLauncherAsNode *bool `json:"runLauncherAsNode,omitempty"`
		} `json:"mpi,omitempty"`
		Flux *struct{} `json:"flux,omitempty"`
	} `json:"mlPolicy,omitempty"`
	PodGroupPolicy *struct {
		Coscheduling *struct{} `json:"coscheduling,omitempty"`
		Volcano      *struct{} `json:"volcano,omitempty"`
	} `json:"podGroupPolicy,omitempty"`
	Template struct {
		Spec jobSetSpec `json:"spec"`
	} `json:"template"`
}

const (
	ancestorLabel   = "trainer.kubeflow.org/trainjob-ancestor-step"
	ancestorTrainer = "trainer"
	trainerNode     = "node"
)

// trainJob reads the JobSet that Kubeflow Trainer creates from a TrainJob and its runtime.
func (s *Set) trainJob(object *unstructured.Unstructured) ([]forecast.Job, error) {
	var train struct {
		Spec trainJobSpec `json:"spec"`
	}
	if err := decodePart(object, &train); err != nil {
		return nil, err
	}
	of, err := s.runtimeOf(object.GetNamespace(), train.Spec)
	if err != nil {
		return nil, err
	}
	var approximate []string
	if policy := of.PodGroupPolicy; policy != nil && (policy.Coscheduling != nil || policy.Volcano != nil) {
		approximate = append(approximate, "its runtime has the pods scheduled in groups, by another scheduler or plugin")
	}
	if of.MLPolicy != nil && of.MLPolicy.Flux != nil {
		approximate = append(approximate, "its runtime has the policy flux, which adds containers to the pods")
	}
	if err := patchRuntime(&of.Template.Spec, train.Spec); err != nil {
		return nil, err
	}
	if err := countNodes(of, train.Spec); err != nil {
		return nil, err
	}
	of.Template.Spec.Suspend = train.Spec.Suspend
	job, err := ofJobSet("TrainJob", meta(object), of.Template.Spec)
	job.Approximate = append(job.Approximate, approximate...)
	return []forecast.Job{job}, err
}

// runtimeOf finds a TrainJob's runtime, in the same file or in the cluster.
func (s *Set) runtimeOf(namespace string, spec trainJobSpec) (*trainingRuntimeSpec, error) {
	key := objectKey{"ClusterTrainingRuntime", "", spec.RuntimeRef.Name}
	if kind := spec.RuntimeRef.Kind; kind != nil && *kind != key.kind {
		key.kind, key.namespace = *kind, namespace
	}
	if key.kind != "ClusterTrainingRuntime" && key.kind != "TrainingRuntime" {
		return nil, fmt.Errorf("spec.runtimeRef.kind is %s; it is TrainingRuntime or ClusterTrainingRuntime", key.kind)
	}
	object := s.runtimes[key]
	if object == nil && s.given.Runtime != nil {
		var err error
		if object, err = s.given.Runtime(key.kind, key.namespace, key.name); err != nil {
			return nil, fmt.Errorf("%s %s is not in the job file, and could not be read: %w", key.kind, key.name, err)
		}
	}
	if object == nil {
		return nil, fmt.Errorf("%s %s is not in the file; add it", key.kind, key.name)
	}
	var of struct {
		Spec trainingRuntimeSpec `json:"spec"`
	}
	if _, err := decodeFields(object.Object, &of); err != nil {
		return nil, fmt.Errorf("%s %s: %w", key.kind, key.name, err)
	}
	return &of.Spec, nil
}

// patchRuntime applies a TrainJob's changes to the template of its runtime (mergeRuntimePatches), and keeps the order
// of its Jobs.
func patchRuntime(spec *jobSetSpec, train trainJobSpec) error {
	order := map[string]int{}
	for i, replicated := range spec.ReplicatedJobs {
		order[replicated.Name] = i
	}
	for _, patch := range train.RuntimePatches {
		if patch.TrainingRuntimeSpec == nil || patch.TrainingRuntimeSpec.Template == nil || len(patch.TrainingRuntimeSpec.Template.Spec) == 0 {
			continue
		}
		if err := merge(spec, patch.TrainingRuntimeSpec.Template.Spec, jobSetSpec{}); err != nil {
			return fmt.Errorf("spec.runtimePatches: %w", err)
		}
	}
	for _, override := range train.PodTemplateOverrides {
		patch := map[string]any{}
		if override.Metadata != nil {
			patch["metadata"] = override.Metadata
		}
		if override.Spec != nil {
			patch["spec"] = override.Spec
		}
		for _, target := range override.TargetJobs {
			at, known := order[target.Name]
			if !known {
				return fmt.Errorf("spec.podTemplateOverrides: its runtime has no job %q", target.Name)
			}
			if err := merge(&spec.ReplicatedJobs[at].Template.Spec.Template, patch, corev1.PodTemplateSpec{}); err != nil {
				return fmt.Errorf("spec.podTemplateOverrides: %w", err)
			}
		}
	}
	slices.SortStableFunc(spec.ReplicatedJobs, func(a, b replicatedJob) int { return order[a.Name] - order[b.Name] })
	return nil
}

// merge applies a strategic merge patch; shape is an empty value of the type that is patched.
func merge[T any](to *T, patch map[string]any, shape T) error {
	original, err := json.Marshal(to)
	if err != nil {
		return err
	}
	change, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	merged, err := trainingjob.StrategicMerge(original, change, shape)
	if err != nil {
		return err
	}
	*to = shape
	return json.Unmarshal(merged, to)
}

// countNodes sets the numbers of pods of the Jobs, and the resources of the trainer (newRuntimeInfo and the plugins'
// EnforceMLPolicy): each Job exists once, and all its pods run at the same time.
func countNodes(of *trainingRuntimeSpec, train trainJobSpec) error {
	policy := of.MLPolicy
	mpi := policy != nil && policy.MPI != nil
	launcherIsNode := mpi && isTrue(policy.MPI.RunLauncherAsNode)
	var nodes *int32
	if train.Trainer != nil && train.Trainer.NumNodes != nil {
		n, err := counted("spec.trainer.numNodes", train.Trainer.NumNodes, 1)
		if err != nil {
			return err
		}
		nodes = new(int32(n)) //nolint:gosec // at most MaxPods
	}
	for i := range of.Template.Spec.ReplicatedJobs {
		replicated := &of.Template.Spec.ReplicatedJobs[i]
		job := &replicated.Template.Spec
		count := int32(1)
		if job.Parallelism != nil {
			count = *job.Parallelism
		}
		trains := replicated.Template.Labels[ancestorLabel] == ancestorTrainer
		if trains && policy != nil {
			if count = 1; policy.NumNodes != nil {
				count = *policy.NumNodes
			}
		}
		switch {
		case nodes == nil || policy == nil:
		case mpi && replicated.Name == trainerNode && launcherIsNode:
			count = max(*nodes-1, 1)
		case mpi && replicated.Name == trainerNode, !mpi && trains:
			count = *nodes
		}
		if label := replicated.Template.Labels[ancestorLabel]; label != "" {
			replicated.Replicas = new(int32(1))
		}
		job.Parallelism, job.Completions = &count, &count
		if train.Trainer == nil || train.Trainer.ResourcesPerNode == nil || policy == nil || !trains && (!launcherIsNode || replicated.Name != trainerNode) {
			continue
		}
		for k := range job.Template.Spec.Containers {
			if container := &job.Template.Spec.Containers[k]; container.Name == trainerNode {
				container.Resources.Requests = overlaid(container.Resources.Requests, train.Trainer.ResourcesPerNode.Requests)
				container.Resources.Limits = overlaid(container.Resources.Limits, train.Trainer.ResourcesPerNode.Limits)
				break
			}
		}
	}
	return nil
}

// overlaid merges amounts; those of the second list take precedence.
func overlaid(base, over corev1.ResourceList) corev1.ResourceList {
	merged := maps.Clone(base)
	if merged == nil && over != nil {
		merged = corev1.ResourceList{}
	}
	maps.Copy(merged, over)
	return merged
}
