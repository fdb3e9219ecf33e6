package terraformplan

import (
	"reflect"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var (
	quantityType    = reflect.TypeFor[resource.Quantity]()
	intOrStringType = reflect.TypeFor[intstr.IntOrString]()
	timeType        = reflect.TypeFor[metav1.Time]()
)

// fieldsOf converts the attributes and blocks of a resource of hashicorp/kubernetes to the fields of a Go type of the
// API. The provider names fields in snake case, lists of blocks in the singular ("container" for containers), writes a
// single object as a list of one block, and numbers that may be unset as texts. What has no field in the type is the
// provider's own.
func fieldsOf(value any, kind reflect.Type) any {
	for kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	if value == nil {
		return nil
	}
	switch kind {
	case quantityType, timeType:
		return value
	case intOrStringType:
		if text, isText := value.(string); isText {
			if n, err := strconv.ParseInt(text, 10, 32); err == nil {
				return n
			}
		}
		return value
	}
	switch kind.Kind() {
	case reflect.Struct:
		return structOf(single(value), kind)
	case reflect.Slice:
		list, isList := value.([]any)
		if !isList || len(list) == 0 {
			return nil
		}
		var items []any
		for _, item := range list {
			if item := fieldsOf(item, kind.Elem()); item != nil {
				items = append(items, item)
			} else if kind.Elem().Kind() == reflect.Struct {
				items = append(items, map[string]any{}) // an empty block has a meaning: an empty_dir, a selector of all
			}
		}
		return items
	case reflect.Map:
		given, isMap := single(value).(map[string]any)
		if !isMap {
			return nil
		}
		fields := map[string]any{}
		for key, inner := range given {
			if inner := fieldsOf(inner, kind.Elem()); inner != nil {
				fields[key] = inner
			}
		}
		return fields
	default:
		return scalarOf(value, kind)
	}
}

// single is the one block of a list of blocks.
func single(value any) any {
	list, isList := value.([]any)
	switch {
	case !isList:
		return value
	case len(list) == 0:
		return nil
	case list[0] == nil:
		return map[string]any{} // a block without attributes
	}
	return list[0]
}

func structOf(value any, kind reflect.Type) any {
	given, isMap := value.(map[string]any)
	if !isMap {
		return nil
	}
	fields := map[string]any{}
	for name, inner := range given {
		field, found := fieldNamed(kind, name)
		if !found {
			continue
		}
		if converted := fieldsOf(inner, field.kind); converted != nil {
			fields[field.name] = converted
		}
	}
	return fields
}

type field struct {
	name string
	kind reflect.Type
}

// fieldNamed finds the field of an attribute: by its name without regard to case, in singular or plural.
func fieldNamed(kind reflect.Type, attribute string) (field, bool) {
	plain := strings.ToLower(strings.ReplaceAll(attribute, "_", ""))
	for _, name := range []string{plain, plain + "s", plain + "es"} {
		if found, ok := lookUp(kind, name); ok {
			return found, true
		}
	}
	return field{}, false
}

func lookUp(kind reflect.Type, lower string) (field, bool) {
	for i := range kind.NumField() {
		f := kind.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			if found, ok := lookUp(f.Type, lower); ok {
				return found, true
			}
			continue
		}
		if strings.ToLower(name) == lower {
			return field{name, f.Type}, true
		}
	}
	return field{}, false
}

// scalarOf is a string, number or boolean of the field's type; nil for an empty string, which means unset.
func scalarOf(value any, kind reflect.Type) any {
	text, isText := value.(string)
	if isText && text == "" {
		return nil
	}
	switch kind.Kind() {
	case reflect.Int, reflect.Int32, reflect.Int64:
		if isText {
			if n, err := strconv.ParseInt(text, 0, 64); err == nil { // 0: modes of files are octal
				return n
			}
			return nil
		}
		if n, isNumber := value.(float64); isNumber {
			return int64(n)
		}
	case reflect.Bool:
		if isText {
			if b, err := strconv.ParseBool(text); err == nil {
				return b
			}
			return nil
		}
	case reflect.String:
		switch v := value.(type) {
		case float64:
			return strconv.FormatFloat(v, 'f', -1, 64)
		case bool:
			return strconv.FormatBool(v)
		}
	}
	return value
}
