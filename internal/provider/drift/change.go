// Package drift finds attributes whose fields other field managers of Kubernetes have changed: which changes of a plan
// set such fields back, and which fields were changed after the plan was made, so that applying it would overwrite
// changes that the plan did not show. It compares values of a resource with one another and with the writers in
// managedFields, and it describes the result as text.
//
// The package is pure. The resources decide what the values are, and which attribute a field of the API has.
package drift

import (
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// Change is an attribute, or a part of one, whose values differ.
type Change struct {
	Path     path.Path
	From, To tftypes.Value
}

// Changes compares two values of a resource, as deep as both have the same shape: the keys of maps, and the items of
// lists of the same length. Only the attributes that compared selects are looked at.
func Changes(from, to map[string]tftypes.Value, compared func(attribute string) bool) []Change {
	var changes []Change
	for _, name := range sortedKeys(from, to) {
		if compared(name) {
			changes = append(changes, compare(path.Root(name), from[name], to[name])...)
		}
	}
	return changes
}

func compare(at path.Path, from, to tftypes.Value) []Change {
	if from.Equal(to) {
		return nil
	}
	var changes []Change
	switch kind := to.Type(); {
	case !from.IsKnown() || !to.IsKnown():
	case kind.Is(tftypes.Map{}):
		before, after := Entries(from), Entries(to)
		for _, key := range sortedKeys(before, after) {
			changes = append(changes, compare(at.AtMapKey(key), orNull(before[key], after[key]), orNull(after[key], before[key]))...)
		}
		return changes
	case from.IsNull() || to.IsNull():
	case kind.Is(tftypes.Object{}):
		before, after := Entries(from), Entries(to)
		for _, name := range sortedKeys(before, after) {
			changes = append(changes, compare(at.AtName(name), before[name], after[name])...)
		}
		return changes
	case kind.Is(tftypes.List{}):
		before, after := items(from), items(to)
		if len(before) != len(after) {
			break
		}
		for i := range before {
			changes = append(changes, compare(at.AtListIndex(i), before[i], after[i])...)
		}
		return changes
	}
	return []Change{{Path: at, From: from, To: to}}
}

// orNull is the value, or null where a map does not have it.
func orNull(value, other tftypes.Value) tftypes.Value {
	if value.Type() == nil {
		return tftypes.NewValue(other.Type(), nil)
	}
	return value
}

// overlap reports whether one path is the other, or a part of it.
func overlap(a, b string) bool { return covers(a, b) || covers(b, a) }

// covers reports whether a path is another one, or holds it.
func covers(outer, inner string) bool {
	rest, ok := strings.CutPrefix(inner, outer)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// at is the value at a path, and whether there is one: not below null, what is unknown, or the end of a list.
func at(object map[string]tftypes.Value, of path.Path) (tftypes.Value, bool) {
	value := tftypes.Value{}
	for i, step := range of.Steps() {
		ok := false
		switch s := step.(type) {
		case path.PathStepAttributeName:
			if i == 0 {
				value, ok = object[string(s)]
			} else {
				value, ok = Entries(value)[string(s)]
			}
		case path.PathStepElementKeyString:
			value, ok = Entries(value)[string(s)]
		case path.PathStepElementKeyInt:
			if all := items(value); int(s) < len(all) {
				value, ok = all[s], true
			}
		}
		if !ok {
			return tftypes.Value{}, false
		}
	}
	return value, true
}

// IgnorePath is the path for ignore_changes in a resource with the given configuration, so that Terraform ignores a
// path: the path itself, or the part of it that the configuration sets. Terraform finds nothing to ignore below null,
// except for keys of a map.
func IgnorePath(config map[string]tftypes.Value, of path.Path) path.Path {
	steps := of.Steps()
	for i := 1; i < len(steps); i++ {
		outer := path.Empty()
		for _, step := range steps[:i] {
			outer = extend(outer, step)
		}
		if _, isKey := steps[i].(path.PathStepElementKeyString); isKey && i == len(steps)-1 {
			break
		}
		if value, ok := at(config, outer); !ok || value.IsNull() || !value.IsKnown() {
			return outer
		}
	}
	return of
}

func extend(p path.Path, step path.PathStep) path.Path {
	switch s := step.(type) {
	case path.PathStepAttributeName:
		return p.AtName(string(s))
	case path.PathStepElementKeyString:
		return p.AtMapKey(string(s))
	case path.PathStepElementKeyInt:
		return p.AtListIndex(int(s))
	default:
		return p
	}
}

// Entries are those of an object or a map; none of a null or unknown one.
func Entries(value tftypes.Value) map[string]tftypes.Value {
	all := map[string]tftypes.Value{}
	if value.Type() != nil && !value.IsNull() && value.IsKnown() {
		_ = value.As(&all) // an object or a map, as the caller has seen
	}
	return all
}

func items(value tftypes.Value) []tftypes.Value {
	var all []tftypes.Value
	if value.Type() != nil && !value.IsNull() && value.IsKnown() {
		_ = value.As(&all)
	}
	return all
}
