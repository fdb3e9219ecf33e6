// Package validationtest contains invalid objects of Kueue's kinds with their expected errors, for the tests of package
// validation and for the test that sends the same objects to a real API server.
package validationtest

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/validation"
)

// Namespace of the namespaced objects.
const Namespace = "default"

// Object is one of the seven kinds that users declare.
type Object interface {
	metav1.Object
	runtime.Object
}

// Case is an object, and what is wrong with it.
type Case struct {
	Behaviour string // a sentence
	Existing  Object // nil where Object is created; else what it is changed from
	Object    Object
	Wrong     []string // the fields of the errors, with the origin after them where it is not the CRD: "spec.a webhook"
}

// Validate is the Validate function of the object's kind, or the one for updates where there is an existing one.
func Validate(object, existing Object) field.ErrorList {
	switch object := object.(type) {
	case *kueue.AdmissionCheck:
		return validate(object, existing, validation.ValidateAdmissionCheck, validation.ValidateAdmissionCheckUpdate)
	case *kueue.ClusterQueue:
		return validate(object, existing, validation.ValidateClusterQueue, validation.ValidateClusterQueueUpdate)
	case *kueue.Cohort:
		return validate(object, existing, validation.ValidateCohort, validation.ValidateCohortUpdate)
	case *kueue.LocalQueue:
		return validate(object, existing, validation.ValidateLocalQueue, validation.ValidateLocalQueueUpdate)
	case *kueue.ResourceFlavor:
		return validate(object, existing, validation.ValidateResourceFlavor, validation.ValidateResourceFlavorUpdate)
	case *kueue.Topology:
		return validate(object, existing, validation.ValidateTopology, validation.ValidateTopologyUpdate)
	case *kueue.WorkloadPriorityClass:
		return validate(object, existing, validation.ValidateWorkloadPriorityClass, validation.ValidateWorkloadPriorityClassUpdate)
	default:
		panic(fmt.Sprintf("no validation for a %T", object))
	}
}

func validate[T Object](object T, existing Object, create func(T) field.ErrorList, update func(updated, existing T) field.ErrorList) field.ErrorList {
	if existing == nil {
		return create(object)
	}
	return update(object, existing.(T))
}

// Refused holds when an error is of that origin.
func Refused(errs field.ErrorList, origin string) bool {
	for _, err := range errs {
		if err.Origin == origin {
			return true
		}
	}
	return false
}

// Cases are all cases, of all kinds.
func Cases() []Case {
	var cases []Case
	for _, of := range [][]Case{
		admissionChecks(), clusterQueues(), clusterQueueUpdates(), cohorts(), localQueues(), resourceFlavors(), resourceFlavorUpdates(),
		topologies(), workloadPriorityClasses(),
	} {
		cases = append(cases, of...)
	}
	return cases
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
