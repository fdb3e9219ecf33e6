package manifest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
)

// errNoPods is the error for an unknown kind in which nothing looks like pods.
var errNoPods = errors.New("a forecast does not know this kind, and finds no pod template in it")

// countFields are the fields beside a pod template that may contain its number of pods.
var countFields = []string{"replicas", "parallelism", "count", "size", "minReplicas", "numReplicas", "numNodes"}

// generic reads an object of an unknown kind: every pod template in it, with the number of pods beside the template.
// Its controller may do more than this, so that the forecast is approximate.
func (s *Set) generic(object *unstructured.Unstructured) ([]forecast.Job, error) {
	spec, isMap := object.Object["spec"].(map[string]any)
	if !isMap {
		return nil, errNoPods
	}
	var sets []podSet
	if err := findTemplates(spec, []string{"spec"}, 1, &sets); err != nil {
		return nil, err
	}
	if len(sets) == 0 {
		return nil, errNoPods
	}
	if len(sets) == 1 {
		sets[0].name = mainPodSet
	}
	job, err := workload(object.GetKind(), meta(object), sets)
	job.Approximate = append(job.Approximate, fmt.Sprintf("what the controller of %s %s creates is not known: it is taken to create the pods of all its templates at once",
		object.GetKind(), object.GetName()))
	return []forecast.Job{job}, err
}

// maxDepth bounds the depth of the search for templates.
const maxDepth = 12

// findTemplates searches an object in the order of its keys. A map with spec.containers is a template; the nearest
// field of countFields is its number of pods.
func findTemplates(value any, path []string, count int64, sets *[]podSet) error {
	if len(path) > maxDepth {
		return nil
	}
	switch v := value.(type) {
	case map[string]any:
		for _, name := range countFields {
			if n, ok := v[name].(int64); ok {
				if n < 0 || n > MaxPods {
					return fmt.Errorf("%s.%s is %d; a forecast takes 0 to %d pods", strings.Join(path, "."), name, n, MaxPods)
				}
				count = n
				break
			}
		}
		if inner, ok := v["spec"].(map[string]any); ok && inner["containers"] != nil {
			var template corev1.PodTemplateSpec
			object := &unstructured.Unstructured{Object: map[string]any{"metadata": v["metadata"], "spec": inner}}
			if err := decode(object, &template); err != nil {
				return fmt.Errorf("%s: %w", strings.Join(path, "."), err)
			}
			*sets = append(*sets, podSet{name: templateName(path, *sets), count: int(count), template: template})
			return nil
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if err := findTemplates(v[key], append(slices.Clip(path), key), count, sets); err != nil {
				return err
			}
		}
	case []any:
		for i, item := range v {
			name := fmt.Sprint(i)
			if m, ok := item.(map[string]any); ok {
				if given, ok := m["name"].(string); ok && given != "" && !strings.ContainsAny(given, " \t\n") {
					name = given
				}
			}
			if err := findTemplates(item, append(slices.Clip(path), name), count, sets); err != nil {
				return err
			}
		}
	}
	return nil
}

// templateName is the last meaningful word of a path, with a number if another pod set has the name.
func templateName(path []string, others []podSet) string {
	name := "pod"
	for _, word := range slices.Backward(path) {
		if word != "template" && word != "spec" && word != "podTemplate" && word != "podTemplateSpec" {
			name = setName(word)
			break
		}
	}
	for n := 2; slices.ContainsFunc(others, func(s podSet) bool { return s.name == name }); n++ {
		base, _, _ := strings.Cut(name, "~")
		name = fmt.Sprintf("%s~%d", base, n)
	}
	return name
}
