package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// ValidateCohort reports why a cohort would be refused.
func ValidateCohort(cohort *kueue.Cohort) field.ErrorList {
	spec, path := &cohort.Spec, field.NewPath("spec")
	errs := metadata(&cohort.ObjectMeta, false)
	if spec.ParentName != "" {
		errs = append(errs, reference(spec.ParentName, path.Child("parentName"))...)
	}
	// A rule of ours: Kueue accepts the shortest cycle, and then admits nothing in any queue of it.
	if spec.ParentName != "" && string(spec.ParentName) == cohort.Name {
		errs = append(errs, from(Ours, field.Invalid(path.Child("parentName"), spec.ParentName,
			"is the cohort itself, and a cycle stops every queue in it: name another, or leave it out for the root of a tree"))...)
	}
	owner := quotaOwner{cohort: true, above: "parentName", hasAbove: spec.ParentName != ""}
	errs = append(errs, resourceGroups(spec.ResourceGroups, owner, path.Child("resourceGroups"))...)
	return append(errs, fairSharing(spec.FairSharing, path.Child("fairSharing"))...)
}

// ValidateCohortUpdate reports why a change of a cohort would be refused. Nothing of it is immutable.
func ValidateCohortUpdate(updated, _ *kueue.Cohort) field.ErrorList { return ValidateCohort(updated) }
