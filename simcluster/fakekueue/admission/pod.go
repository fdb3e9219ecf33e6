package admission

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/fakekueue/workload"
)

// DefaultPod is the patch for a pod that is being created: if it is in a queue, by its label or because its namespace
// has a queue "default", it is marked as managed, gated, and kept by a finalizer. ownerQueued says that a controller
// above it is in a queue, so that the pod is none of ours.
func DefaultPod(pod *corev1.Pod, defaultQueue, ownerQueued bool) (Patch, error) {
	if ownerQueued {
		return nil, nil
	}
	labels := pod.Labels
	if labels[kueue.QueueLabel] == "" {
		if !defaultQueue {
			return nil, nil
		}
		labels = withLabel(labels, kueue.QueueLabel, string(kueue.DefaultLocalQueueName))
	}
	role, err := workload.Role(pod)
	if err != nil {
		return nil, fmt.Errorf("computing the pod's role: %w", err)
	}
	gates := pod.Spec.SchedulingGates
	for _, name := range []string{kueue.AdmissionGate, kueue.TopologyGate} {
		if !workload.HasGate(pod, name) {
			gates = append(slices.Clip(gates), corev1.PodSchedulingGate{Name: name})
		}
	}
	patch := withFinalizer(pod.Finalizers, kueue.PodFinalizer)
	patch.set("/metadata/labels", withLabel(labels, kueue.ManagedLabel, "true"))
	patch.set("/metadata/annotations", withLabel(pod.Annotations, kueue.RoleHashAnnotation, role))
	patch.set("/spec/schedulingGates", gates)
	return patch, nil
}

// ValidatePod lists what is wrong with a queued pod, and with its change from old; old is nil for one that is being
// created.
func ValidatePod(pod, old *corev1.Pod, defaultQueue bool) field.ErrorList {
	problems := validateQueued(pod)
	if old != nil {
		problems = validateQueuedUpdate(pod, old, workload.PodSuspended(pod), workload.PodSuspended(old), defaultQueue)
	}
	if value, given := pod.Labels[kueue.ManagedLabel]; given && value != "true" {
		problems = append(problems, field.Forbidden(labelsPath.Key(kueue.ManagedLabel), "managed label value can only be 'true'"))
	}
	problems = append(problems, validateGroup(pod)...)
	if old == nil {
		return problems
	}
	group, before := pod.Labels[kueue.PodGroupNameLabel], old.Labels[kueue.PodGroupNameLabel]
	if group != "" && !workload.Retriable(old) && workload.Retriable(pod) {
		problems = append(problems, field.Forbidden(annotationsPath.Key(kueue.RetriableInGroupAnnotation), "unretriable pod group can't be converted to retriable"))
	}
	if before != "" {
		problems = append(problems, apivalidation.ValidateImmutableField(group, before, labelsPath.Key(kueue.PodGroupNameLabel))...)
	}
	return problems
}

func validateGroup(pod *corev1.Pod) field.ErrorList {
	groupPath, totalPath := labelsPath.Key(kueue.PodGroupNameLabel), annotationsPath.Key(kueue.PodGroupTotalCountAnnotation)
	both := fmt.Sprintf("both the '%s' annotation and the '%s' label should be set", kueue.PodGroupTotalCountAnnotation, kueue.PodGroupNameLabel)
	group := pod.Labels[kueue.PodGroupNameLabel]
	total, given := pod.Annotations[kueue.PodGroupTotalCountAnnotation]
	if group == "" {
		if given {
			return field.ErrorList{field.Required(groupPath, both)}
		}
		return nil
	}
	var problems field.ErrorList
	if messages := validation.IsDNS1123Subdomain(group); len(messages) > 0 {
		problems = append(problems, field.Invalid(groupPath, group, strings.Join(messages, ",")))
	}
	if !given {
		return append(problems, field.Required(totalPath, both))
	}
	if _, err := workload.GroupTotal(pod); err != nil {
		problems = append(problems, field.Invalid(totalPath, total, err.Error()))
	}
	return problems
}
