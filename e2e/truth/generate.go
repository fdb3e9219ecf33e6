package truth

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// Generate makes a situation of a seed; the same one every time.
func Generate(seed uint64) *Situation {
	d := &drawing{Rand: rand.New(rand.NewPCG(seed, 16)), room: maxBefore} //nolint:gosec // it has to be the same every time
	if d.oneIn(4) {
		if d.oneIn(3) { // pods without a queue leave less room
			d.residents()
		}
		queuedFeatures[d.weightedOf(queuedFeatures)].add(d)
	} else {
		d.residents()
		d.planned()
		for range 1 + d.IntN(3) {
			features[d.weightedOf(features)].add(d)
		}
	}
	s := &Situation{Name: fmt.Sprintf("seed-%d", seed), Job: d.job}
	for _, part := range [][]*unstructured.Unstructured{d.first, d.then} {
		if len(part) > 0 {
			s.Setup = append(s.Setup, part)
		}
	}
	return s
}

const (
	// maxBefore is the largest number of pods before the job, and maxPlanned of planned pods, so that a situation
	// settles within seconds.
	maxBefore  = 12
	maxPlanned = 6
)

// A drawing is a situation that is being made.
type drawing struct {
	*rand.Rand
	first, then, job []*unstructured.Unstructured
	room             int // how many pods more there may be
	names            int
}

// A feature is something that a situation may have. Those that weigh more are drawn more often.
type feature struct {
	weight int
	add    func(*drawing)
}

var features = slices.Concat(podFeatures, policyFeatures, queueFeatures, deviceFeatures, lifecycleFeatures)

// weightedOf draws the number of a feature.
func (d *drawing) weightedOf(features []feature) int {
	sum := 0
	for _, f := range features {
		sum += f.weight
	}
	n := d.IntN(sum)
	for i, f := range features {
		if n -= f.weight; n < 0 {
			return i
		}
	}
	panic("truth: the weights of features are not what they were")
}

// one draws one of several.
func one[T any](d *drawing, of ...T) T { return of[d.IntN(len(of))] }

// oneIn is true once in n times.
func (d *drawing) oneIn(n int) bool { return d.IntN(n) == 0 }

// name makes a name that nothing else has.
func (d *drawing) name(prefix string) string {
	d.names++
	return fmt.Sprintf("%s-%d", prefix, d.names)
}

// yamlOf reads YAML into what objects consist of. A text that is none is a mistake in this package.
func yamlOf(format string, args ...any) any {
	var value any
	if err := utilyaml.Unmarshal(fmt.Appendf(nil, format, args...), &value); err != nil {
		panic(fmt.Sprintf("truth: %q: %v", fmt.Sprintf(format, args...), err))
	}
	return value
}

func objectOf(format string, args ...any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: yamlOf(format, args...).(map[string]any)}
}

// set sets a field of an object, which it makes where it is not there.
func set(object map[string]any, value any, path ...string) {
	for _, field := range path[:len(path)-1] {
		next, ok := object[field].(map[string]any)
		if !ok {
			next = map[string]any{}
			object[field] = next
		}
		object = next
	}
	object[path[len(path)-1]] = value
}

// template is the map in which an object's pods are described, with metadata and spec.
func template(object *unstructured.Unstructured) map[string]any {
	if object.GetKind() == "Pod" {
		return object.Object
	}
	spec, _ := object.Object["spec"].(map[string]any)
	found, _ := spec["template"].(map[string]any)
	return found
}

// podSpec is the spec of an object's pods; nil where it has none.
func podSpec(object *unstructured.Unstructured) map[string]any {
	spec, _ := template(object)["spec"].(map[string]any)
	return spec
}

// label gives an object's pods a label, which makes no difference to how its controller selects them.
func label(object *unstructured.Unstructured, key, value string) {
	set(template(object), value, "metadata", "labels", key)
}

// container is the first container of an object's pods.
func container(object *unstructured.Unstructured) map[string]any {
	containers, _ := podSpec(object)["containers"].([]any)
	first, _ := containers[0].(map[string]any)
	return first
}

// anyResident draws an existing object with pods; nil if there is none.
func (d *drawing) anyResident() *unstructured.Unstructured {
	with := withPods(slices.Concat(d.first, d.then))
	if len(with) == 0 {
		return nil
	}
	return one(d, with...)
}

// anyPlanned draws one of the planned objects.
func (d *drawing) anyPlanned() *unstructured.Unstructured { return one(d, withPods(d.job)...) }

// anyWithPods draws something that has pods, planned or not.
func (d *drawing) anyWithPods() *unstructured.Unstructured {
	if resident := d.anyResident(); resident != nil && d.oneIn(2) {
		return resident
	}
	return d.anyPlanned()
}

func withPods(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(objects), func(object *unstructured.Unstructured) bool { return podSpec(object) == nil })
}
