package validation

import (
	"regexp"

	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

const (
	longestControllerName = 253
	longestKind           = 63
)

// kindPattern is the CRD's pattern for a kind.
var kindPattern = regexp.MustCompile(`^(?i)[a-z]([-a-z0-9]*[a-z0-9])?$`)

// ValidateAdmissionCheck reports why a check would be refused.
func ValidateAdmissionCheck(check *kueue.AdmissionCheck) field.ErrorList {
	path := field.NewPath("spec")
	errs := metadata(&check.ObjectMeta, false)
	errs = append(errs, length(check.Spec.ControllerName, path.Child("controllerName"), 1, longestControllerName)...)
	parameters := check.Spec.Parameters
	if parameters == nil {
		return errs
	}
	path = path.Child("parameters")
	errs = append(errs, requiredReference(parameters.APIGroup, path.Child("apiGroup"))...)
	errs = append(errs, length(parameters.Kind, path.Child("kind"), 1, longestKind)...)
	if parameters.Kind != "" && !kindPattern.MatchString(parameters.Kind) {
		errs = append(errs, field.Invalid(path.Child("kind"), parameters.Kind, "is not a kind, such as ProvisioningRequestConfig: letters, digits and '-', beginning with a letter"))
	}
	if parameters.Name == "" {
		return append(errs, field.Required(path.Child("name"), "name the object that is meant"))
	}
	for _, problem := range utilvalidation.IsDNS1123Label(parameters.Name) {
		errs = append(errs, field.Invalid(path.Child("name"), parameters.Name, "is not a name that may stand here: "+problem))
	}
	return errs
}

// ValidateAdmissionCheckUpdate reports why a change of a check would be refused. Its controller is immutable.
func ValidateAdmissionCheckUpdate(updated, existing *kueue.AdmissionCheck) field.ErrorList {
	errs := ValidateAdmissionCheck(updated)
	if was, is := existing.Spec.ControllerName, updated.Spec.ControllerName; was != is {
		errs = append(errs, immutable(field.NewPath("spec", "controllerName"), was, is, "make another check"))
	}
	return errs
}
