package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

const longestDescription = 2048

// ValidateWorkloadPriorityClass reports why a class would be refused.
func ValidateWorkloadPriorityClass(class *kueue.WorkloadPriorityClass) field.ErrorList {
	errs := metadata(&class.ObjectMeta, false)
	return append(errs, length(class.Description, field.NewPath("description"), 0, longestDescription)...)
}

// ValidateWorkloadPriorityClassUpdate reports why a change of a class would be refused. Nothing of it is immutable:
// another value is for workloads to come.
func ValidateWorkloadPriorityClassUpdate(updated, _ *kueue.WorkloadPriorityClass) field.ErrorList {
	return ValidateWorkloadPriorityClass(updated)
}
