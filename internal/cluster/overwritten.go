package cluster

import (
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Overwritten is a field that the client's field manager wrote and that others have written or removed since.
type Overwritten struct {
	Path    []string // spec, parallelism; a list is one field
	Manager string   // "" where it was removed, of which managedFields say nothing
	Time    time.Time
	Desired any // as JSON has it; nil where it is not known
}

// Field is the path as text: "spec.parallelism", and `metadata.labels["example.com/team"]` where a key is no plain
// word.
func (o Overwritten) Field() string {
	var b strings.Builder
	for i, key := range o.Path {
		switch {
		case strings.ContainsAny(key, "./"):
			b.WriteString(`["` + key + `"]`)
		case i > 0:
			b.WriteString("." + key)
		default:
			b.WriteString(key)
		}
	}
	return b.String()
}

// Taken are the fields of desired that the client's field manager does not own any more, as the metadata of the live
// object say. WithOtherValues reports whether they have another value. Where the metadata name no field of ours nothing
// is known.
func Taken(c *Client, live metav1.Object, desired Object) ([]Overwritten, error) {
	body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(desired)
	if err != nil {
		return nil, err
	}
	ours := fieldpath.NewSet()
	type entry struct {
		metav1.ManagedFieldsEntry
		fields *fieldpath.Set
	}
	var others []entry
	for _, e := range live.GetManagedFields() {
		if e.FieldsV1 == nil || e.Subresource != "" {
			continue
		}
		fields, err := fieldsOf(e)
		if err != nil {
			return nil, err
		}
		if isOurs(e.Manager, c.FieldManager()) {
			ours = ours.Union(fields)
		} else {
			others = append(others, entry{e, fields})
		}
	}
	if ours.Empty() {
		return nil, nil
	}
	var taken []Overwritten
	for _, field := range leavesOf(body, nil) {
		at := make(fieldpath.Path, len(field.Path))
		for i := range field.Path {
			at[i] = nameOf(field.Path[i])
		}
		owns := func(set *fieldpath.Set) bool { return set.Has(at) || !within(set, at).Empty() }
		_, isList := field.Desired.([]any)
		for _, other := range others {
			// Of a list that has parts of its own somebody may own one, and we the rest.
			if owns(other.fields) && (!owns(ours) || isList) {
				field.Manager = other.Manager
				if other.Time != nil {
					field.Time = other.Time.UTC()
				}
			}
		}
		if field.Manager != "" || !owns(ours) {
			taken = append(taken, field)
		}
	}
	return taken, nil
}

// leavesOf are the fields of an object that hold no others, in the order of their names; a list is one.
func leavesOf(body map[string]any, above []string) []Overwritten {
	var leaves []Overwritten
	for _, key := range slices.Sorted(maps.Keys(body)) {
		at := append(slices.Clone(above), key)
		if fields, ok := body[key].(map[string]any); ok {
			leaves = append(leaves, leavesOf(fields, at)...)
			continue
		}
		leaves = append(leaves, Overwritten{Path: at, Desired: body[key]})
	}
	return leaves
}

// WithOtherValues are those of the fields whose values are others than desired in the live object. What the API server
// has added to an item of a list is no difference, and a value that is not known always is one.
func WithOtherValues(live Object, taken []Overwritten) ([]Overwritten, error) {
	body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(taken), func(o Overwritten) bool {
		value := any(body)
		for _, key := range o.Path {
			fields, _ := value.(map[string]any)
			value = fields[key]
		}
		return o.Desired != nil && saysAll(value, o.Desired)
	}), nil
}

// saysAll reports whether a live value has all that is desired.
func saysAll(live, desired any) bool {
	switch d := desired.(type) {
	case map[string]any:
		l, _ := live.(map[string]any)
		for key := range d {
			if !saysAll(l[key], d[key]) {
				return false
			}
		}
		return true
	case []any:
		l, _ := live.([]any)
		if len(l) != len(d) {
			return false
		}
		for i := range d {
			if !saysAll(l[i], d[i]) {
				return false
			}
		}
		return true
	}
	return equality.Semantic.DeepEqual(live, desired)
}

// Restoring is the JSON merge patch that gives fields their desired values.
func Restoring(fields []Overwritten) map[string]any {
	patch := map[string]any{}
	for _, field := range fields {
		at := patch
		for _, key := range field.Path[:len(field.Path)-1] {
			below, ok := at[key].(map[string]any)
			if !ok {
				below = map[string]any{}
				at[key] = below
			}
			at = below
		}
		at[field.Path[len(field.Path)-1]] = field.Desired
	}
	return patch
}
