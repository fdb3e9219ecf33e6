// Package apifield implements the rule that maps attributes to fields of the API: an attribute has the field's name in
// snake case, the same nesting and the same meaning. From a schema alone the package derives the JSON for the API
// (Expand), the values for Terraform (Flatten), and the attribute of an error's field path (Path). The definitions of
// jobs use the attributes' own names, by a Naming of their own.
//
// A value keeps the user's spelling if the API server returns another spelling of the same meaning, or omits the field.
// The callers decide what the fields mean and which values are allowed.
package apifield

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// Snake is the attribute's name for a field's: global_default for globalDefault.
func Snake(field string) string {
	var b strings.Builder
	for i, r := range field {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// Camel is the field's name for an attribute's: globalDefault for global_default.
func Camel(attribute string) string {
	words := strings.Split(attribute, "_")
	for i, word := range words {
		if i > 0 && word != "" {
			words[i] = strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return strings.Join(words, "")
}

// Naming is the name of the field that an attribute stands for: Camel for objects of Kubernetes.
type Naming func(attribute string) string

// Expand is Naming.Expand for objects of Kubernetes.
func Expand(value tftypes.Value) any { return Naming(Camel).Expand(value) }

// Expand is a value as the API's JSON: objects with the fields' names, maps with their own keys, whole numbers as
// int64 and others as float64, sets as lists in order. It omits null and unknown values, except for items of lists, so that the other items
// keep their places.
func (n Naming) Expand(value tftypes.Value) any {
	if value.IsNull() || !value.IsKnown() {
		return nil
	}
	switch kind := value.Type(); {
	case kind.Is(tftypes.String):
		return as[string](value)
	case kind.Is(tftypes.Bool):
		return as[bool](value)
	case kind.Is(tftypes.Number):
		plain := number(value)
		if !plain.IsInt() {
			fraction, _ := plain.Float64()
			return fraction
		}
		whole, _ := plain.Int64()
		return whole
	case kind.Is(tftypes.List{}):
		items := as[[]tftypes.Value](value)
		list := make([]any, len(items))
		for i, item := range items {
			if list[i] = n.Expand(item); list[i] == nil {
				list[i] = empty(item.Type())
			}
		}
		return list
	case kind.Is(tftypes.Set{}):
		return n.members(as[[]tftypes.Value](value))
	case kind.Is(tftypes.Map{}):
		return n.fields(value, func(key string) string { return key })
	default:
		return n.fields(value, n)
	}
}

// members are the known ones of a set of texts or numbers.
func (n Naming) members(set []tftypes.Value) []any {
	members := []any{}
	for _, member := range set {
		if expanded := n.Expand(member); expanded != nil {
			members = append(members, expanded)
		}
	}
	slices.SortFunc(members, func(a, b any) int {
		whole, isWhole := a.(int64)
		if other, ok := b.(int64); ok && isWhole {
			return cmp.Compare(whole, other)
		}
		return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b))
	})
	return members
}

func (n Naming) fields(value tftypes.Value, name Naming) map[string]any {
	named := map[string]any{}
	for key, entry := range as[map[string]tftypes.Value](value) {
		if expanded := n.Expand(entry); expanded != nil {
			named[name(key)] = expanded
		}
	}
	return named
}

// empty is the value of an item that is null or unknown.
func empty(kind tftypes.Type) any {
	if kind.Is(tftypes.String) {
		return ""
	}
	return map[string]any{}
}
