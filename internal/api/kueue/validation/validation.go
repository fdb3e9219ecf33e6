// Package validation rejects objects that a cluster with Kueue v0.19.2 would reject: it implements the rules of the
// CRDs (schema and CEL) and of Kueue's webhooks as pure functions, one file for each kind.
//
// The field of an error is the path in the API, such as spec.resourceGroups[0].flavors[1].resources[0].borrowingLimit,
// and its detail names the remedy. The Origin of an error states which component would reject the object. Omitted
// fields are validated with the API server's defaults. Kueue's CRDs and webhooks (with their default feature gates)
// accept an object without errors, and reject one with errors, unless all of its errors are of this project's own
// rules.
//
// Each Validate function is for creation; the function with Update in its name validates a change of existing to
// updated, which must be valid itself. References to other objects are not checked: Kueue accepts references to objects
// that do not exist yet.
package validation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Origins of errors, in field.Error.Origin.
const (
	CRD     = ""        // the API server, by the CRD's schema and rules
	Webhook = "webhook" // Kueue's webhook, which is there only while Kueue runs
	Ours    = "ours"    // nobody, but nothing good would come of it
)

// from sets who would refuse.
func from(origin string, errs ...*field.Error) field.ErrorList {
	for _, err := range errs {
		err.Origin = origin
	}
	return errs
}

// metadata checks the part that all objects share.
func metadata(meta *metav1.ObjectMeta, namespaced bool) field.ErrorList {
	return from(CRD, apivalidation.ValidateObjectMeta(meta, namespaced, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))...)
}

// reference checks the name of another object, which is there.
func reference[T ~string](name T, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, problem := range utilvalidation.IsDNS1123Subdomain(string(name)) {
		errs = append(errs, field.Invalid(path, name, "is not the name of an object: "+problem))
	}
	return errs
}

// requiredReference checks the name of another object, which must be there.
func requiredReference[T ~string](name T, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "name the object that is meant")}
	}
	return reference(name, path)
}

// oneOf checks a word. The empty word is left out in JSON, and then has a default.
func oneOf[T ~string](word T, path *field.Path, words ...T) field.ErrorList {
	if word == "" || slices.Contains(words, word) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, word, words)}
}

func stopPolicy(policy *kueue.StopPolicy, path *field.Path) field.ErrorList {
	words := []kueue.StopPolicy{kueue.None, kueue.Hold, kueue.HoldAndDrain}
	if policy == nil || slices.Contains(words, *policy) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, *policy, words)}
}

// length checks the number of characters of a text.
func length(text string, path *field.Path, least, most int) field.ErrorList {
	switch count := utf8.RuneCountInString(text); {
	case count < least:
		return field.ErrorList{field.Required(path, "must not be empty")}
	case count > most:
		return field.ErrorList{field.Invalid(path, fmt.Sprintf("%.20s…", text), fmt.Sprintf("has %d characters; %d are the most", count, most))}
	}
	return nil
}

// items checks the number of entries of a list or map.
func items(count int, path *field.Path, least, most int) field.ErrorList {
	switch {
	case count < least:
		return field.ErrorList{field.Required(path, "must have at least one entry")}
	case count > most:
		return field.ErrorList{field.TooMany(path, count, most)}
	}
	return nil
}

// labelKey checks the key of a label or taint, or the name of a resource, whose syntax is the same. The CRDs do not.
func labelKey[T ~string](key T, what string, path *field.Path) field.ErrorList {
	if key == "" {
		return from(Webhook, field.Required(path, "needs "+what))
	}
	var errs field.ErrorList
	for _, problem := range utilvalidation.IsQualifiedName(string(key)) {
		errs = append(errs, field.Invalid(path, key, "is not "+what+": "+problem))
	}
	return from(Webhook, errs...)
}

// labels checks a map of labels; the path of what is wrong with an entry ends with its key.
func labels(labels map[string]string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		errs = append(errs, labelKey(key, "the key of a label", path.Key(key))...)
		errs = append(errs, labelValue(labels[key], "the value of a label", path.Key(key))...)
	}
	return errs
}

// labelValue checks the value of a label or taint. The CRDs do not.
func labelValue(value, what string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, problem := range utilvalidation.IsValidLabelValue(value) {
		errs = append(errs, field.Invalid(path, value, "is not "+what+": "+problem))
	}
	return from(Webhook, errs...)
}

// taintEffects are the effects that taints have, and that tolerations may name.
func taintEffects() []corev1.TaintEffect {
	return []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
}

// immutable is the error of a field that was changed and must not be.
func immutable(path *field.Path, was, is any, remedy string) *field.Error {
	return field.Invalid(path, is, fmt.Sprintf("is immutable and was %v: %s", was, remedy))
}

// list writes words for a sentence.
func list[T ~string](words []T) string {
	if len(words) == 0 {
		return "none"
	}
	texts := make([]string, len(words))
	for i, word := range words {
		texts[i] = string(word)
	}
	return strings.Join(texts, ", ")
}
