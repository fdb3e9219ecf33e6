// Package versions decodes Kueue's objects as users write them, in any version of the API that Kueue v0.19 serves, into
// the types of v1beta2. It converts v1beta1 as Kueue's webhook does, and refuses fields that the version does not have.
//
// Kueue's own conversion (apis/kueue/v1beta1) links controller-runtime and Kueue's feature gates: 230 packages, for the
// few fields in the tables below. Package e2e/conversion compares the two.
package versions

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

const v1beta1 = "v1beta1"

// change is a field of v1beta1 that v1beta2 does not have, or not with all of its values.
type change struct {
	was, is string // paths such as "spec.cohort"; is "" for a field that has no effect any more
	convert func(value any) any
}

// changes are those of each kind.
var changes = map[string][]change{
	"AdmissionCheck": {{was: "spec.retryDelayMinutes"}},
	"ClusterQueue": {
		{was: "spec.cohort", is: "spec.cohortName"},
		{was: "spec.admissionChecks", is: "spec.admissionChecksStrategy", convert: strategyOf},
		{was: "spec.flavorFungibility.whenCanBorrow", is: "spec.flavorFungibility.whenCanBorrow", convert: mayStopSearch},
		{was: "spec.flavorFungibility.whenCanPreempt", is: "spec.flavorFungibility.whenCanPreempt", convert: mayStopSearch},
		{was: "status.pendingWorkloadsStatus"},
		{was: "status.fairSharing.admissionFairSharingStatus"},
	},
	"Cohort": {{was: "status.fairSharing.admissionFairSharingStatus"}},
	"LocalQueue": {
		{was: "status.flavorUsage", is: "status.flavorsUsage"},
		{was: "status.flavors"},
	},
}

// added are the fields that v1beta1 does not have.
var added = map[string][]string{
	"ClusterQueue": {"spec.cohortName", "spec.concurrentAdmissionPolicy"},
	"LocalQueue":   {"status.flavorsUsage"},
}

// strategyOf is the strategy of a list of names of admission checks. What is no such list stays as it is, for the decoder
// to refuse.
func strategyOf(checks any) any {
	names, isList := checks.([]any)
	if !isList {
		return checks
	}
	if len(names) == 0 {
		return nil
	}
	rules := make([]any, len(names))
	for i, name := range names {
		rules[i] = map[string]any{"name": name}
	}
	return map[string]any{"admissionChecks": rules}
}

// mayStopSearch renames the policies of v1beta1.
func mayStopSearch(policy any) any {
	if policy == "Borrow" || policy == "Preempt" {
		return string(kueue.MayStopSearch)
	}
	return policy
}

// Decode reads an object into a type of v1beta2. Its error names the fields and what to do, and not the object. Workloads,
// which Kueue makes, are not converted.
func Decode(object *unstructured.Unstructured, into any) error {
	version := object.GroupVersionKind().Version
	fields := object.Object
	switch version {
	case kueue.SchemeGroupVersion.Version:
	case v1beta1:
		if err := noneOf(added[object.GetKind()], object); err != nil {
			return err
		}
		fields = converted(object)
	default:
		return fmt.Errorf("apiVersion %s is not of Kueue v0.19, which serves v1beta1 and v1beta2; write %s", object.GetAPIVersion(), kueue.SchemeGroupVersion)
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	unknown, err := kjson.UnmarshalStrict(text, into)
	for i := range unknown {
		unknown[i] = explained(unknown[i], object)
	}
	return errors.Join(append(unknown, err)...)
}

// noneOf refuses fields that are of v1beta2 only.
func noneOf(paths []string, object *unstructured.Unstructured) error {
	var errs []error
	for _, path := range paths {
		if _, found, _ := unstructured.NestedFieldNoCopy(object.Object, strings.Split(path, ".")...); found {
			errs = append(errs, fmt.Errorf("%s does not have the field %s, which is of v1beta2; write apiVersion: %s", object.GetAPIVersion(), path, kueue.SchemeGroupVersion))
		}
	}
	return errors.Join(errs...)
}

// converted is an object of v1beta1 in v1beta2.
func converted(object *unstructured.Unstructured) map[string]any {
	fields := object.DeepCopy().Object
	fields["apiVersion"] = kueue.SchemeGroupVersion.String()
	for _, c := range changes[object.GetKind()] {
		path := strings.Split(c.was, ".")
		value, found, _ := unstructured.NestedFieldNoCopy(fields, path...)
		if !found {
			continue
		}
		unstructured.RemoveNestedField(fields, path...)
		if c.convert != nil {
			value = c.convert(value)
		}
		if c.is != "" && value != nil {
			// The parent is an object, because the field was in it.
			_ = unstructured.SetNestedField(fields, value, strings.Split(c.is, ".")...)
		}
	}
	return fields
}

// explained says of an unknown field of an object what to do about it.
func explained(err error, object *unstructured.Unstructured) error {
	var at kjson.FieldError
	if !errors.As(err, &at) {
		return err
	}
	for _, c := range changes[object.GetKind()] {
		switch {
		case c.was != at.FieldPath():
		case c.is == "":
			return fmt.Errorf("%w: %s has no such field any more; leave it out", err, object.GetAPIVersion())
		default:
			return fmt.Errorf("%w: it is %s in %s; rename it, or write apiVersion: %s/%s", err, c.is, object.GetAPIVersion(), kueue.SchemeGroupVersion.Group, v1beta1)
		}
	}
	return fmt.Errorf("%w: %s has no such field; correct its name, or leave it out", err, object.GetAPIVersion())
}
