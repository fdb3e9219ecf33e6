package admission

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/fakekueue/workload"
)

var (
	labelsPath      = field.NewPath("metadata", "labels")
	annotationsPath = field.NewPath("metadata", "annotations")
)

// DefaultJob is the patch for a Job that is being created: the queue "default" of its namespace if there is one and the
// Job names none, and suspension if it is in a queue. ownerQueued says that a controller above it is in a queue.
func DefaultJob(job *batchv1.Job, defaultQueue, ownerQueued bool) Patch {
	var patch Patch
	queue := job.Labels[kueue.QueueLabel]
	if queue == "" && defaultQueue && !ownerKnown(job) {
		queue = string(kueue.DefaultLocalQueueName)
		patch.set("/metadata/labels", withLabel(job.Labels, kueue.QueueLabel, queue))
	}
	if queue != "" && !ownerQueued && !ptr.Deref(job.Spec.Suspend, false) {
		patch.set("/spec/suspend", true)
	}
	return patch
}

// ValidateJob lists what is wrong with a Job, and with its change from old; old is nil for one that is being created.
func ValidateJob(job, old *batchv1.Job, defaultQueue bool) field.ErrorList {
	problems := validateQueued(job)
	if old == nil || job.Annotations[kueue.JobMinParallelismAnnotation] != old.Annotations[kueue.JobMinParallelismAnnotation] {
		problems = append(problems, validateMinParallelism(job)...)
	}
	problems = append(problems, validateEqualParallelism(job)...)
	if old == nil {
		return problems
	}
	problems = append(problems, validateQueuedUpdate(job, old, workload.JobSuspended(job), workload.JobSuspended(old), defaultQueue)...)
	if _, partial := old.Annotations[kueue.JobMinParallelismAnnotation]; partial &&
		!ptr.Deref(old.Spec.Suspend, false) && ptr.Deref(old.Spec.Parallelism, 1) != ptr.Deref(job.Spec.Parallelism, 1) {
		problems = append(problems, field.Forbidden(field.NewPath("spec", "parallelism"), "cannot change when partial admission is enabled and the job is not suspended"))
	}
	return problems
}

// validateQueued are the rules that Jobs and pods share at any time.
func validateQueued(object metav1.Object) field.ErrorList {
	problems := validateLabelAsName(object, kueue.QueueLabel)
	if text, given := object.GetLabels()[kueue.MaxExecTimeSecondsLabel]; given {
		path := labelsPath.Key(kueue.MaxExecTimeSecondsLabel)
		if seconds, err := strconv.Atoi(text); err != nil {
			problems = append(problems, field.Invalid(path, text, err.Error()))
		} else if seconds <= 0 {
			problems = append(problems, field.Invalid(path, seconds, "should be greater than 0"))
		}
	}
	return problems
}

func validateLabelAsName(object metav1.Object, label string) field.ErrorList {
	value, given := object.GetLabels()[label]
	if !given {
		return nil
	}
	if messages := validation.IsDNS1123Subdomain(value); len(messages) > 0 {
		return field.ErrorList{field.Invalid(labelsPath.Key(label), value, strings.Join(messages, ","))}
	}
	return nil
}

// validateQueuedUpdate are the rules for changes that Jobs and pods share.
func validateQueuedUpdate(object, old metav1.Object, suspended, oldSuspended, defaultQueue bool) field.ErrorList {
	var problems field.ErrorList
	after, before := object.GetLabels(), old.GetLabels()
	queuePath := labelsPath.Key(kueue.QueueLabel)
	if !suspended {
		problems = append(problems, apivalidation.ValidateImmutableField(after[kueue.QueueLabel], before[kueue.QueueLabel], queuePath)...)
	}
	if after[kueue.QueueLabel] == "" && before[kueue.QueueLabel] != "" && defaultQueue {
		problems = append(problems, field.Invalid(queuePath, "", "queue-name must not be empty in namespace with default queue"))
	}
	if !suspended || !oldSuspended {
		problems = append(problems, apivalidation.ValidateImmutableField(after[kueue.MaxExecTimeSecondsLabel], before[kueue.MaxExecTimeSecondsLabel], labelsPath.Key(kueue.MaxExecTimeSecondsLabel))...)
	}
	priorityPath, class, oldClass := labelsPath.Key(kueue.WorkloadPriorityClassLabel), after[kueue.WorkloadPriorityClassLabel], before[kueue.WorkloadPriorityClassLabel]
	switch {
	case !suspended && oldClass == "" && class != "":
		problems = append(problems, field.Invalid(priorityPath, class, "WorkloadPriorityClass cannot be added to a non-suspended workload"))
	case oldClass != "" && class == "":
		problems = append(problems, field.Invalid(priorityPath, class, "WorkloadPriorityClass cannot be removed from a workload"))
	}
	return problems
}

func validateMinParallelism(job *batchv1.Job) field.ErrorList {
	text, given := job.Annotations[kueue.JobMinParallelismAnnotation]
	if !given {
		return nil
	}
	path := annotationsPath.Key(kueue.JobMinParallelismAnnotation)
	pods := workload.JobPods(job)
	if least, err := strconv.Atoi(text); err != nil {
		return field.ErrorList{field.Invalid(path, text, err.Error())}
	} else if int32(least) >= pods || least <= 0 {
		return field.ErrorList{field.Invalid(path, least, fmt.Sprintf("should be between 0 and %d", pods-1))}
	}
	return nil
}

func validateEqualParallelism(job *batchv1.Job) field.ErrorList {
	text, given := job.Annotations[kueue.JobCompletionsEqualParallelismAnnotation]
	if !given {
		return nil
	}
	path := annotationsPath.Key(kueue.JobCompletionsEqualParallelismAnnotation)
	var problems field.ErrorList
	enabled, err := strconv.ParseBool(text)
	if err != nil {
		problems = append(problems, field.Invalid(path, text, err.Error()))
	}
	if !enabled {
		return problems
	}
	if ptr.Deref(job.Spec.CompletionMode, batchv1.NonIndexedCompletion) == batchv1.NonIndexedCompletion {
		problems = append(problems, field.Invalid(path, text, "should not be enabled for NonIndexed jobs"))
	}
	if ptr.Deref(job.Spec.Parallelism, 1) != ptr.Deref(job.Spec.Completions, 1) {
		problems = append(problems, field.Invalid(field.NewPath("spec", "completions"), job.Spec.Completions,
			fmt.Sprintf("should be equal to parallelism when %s annotation is true", kueue.JobCompletionsEqualParallelismAnnotation)))
	}
	return problems
}

func withLabel(labels map[string]string, key, value string) map[string]string {
	changed := maps.Clone(labels)
	if changed == nil {
		changed = map[string]string{}
	}
	changed[key] = value
	return changed
}
