package apifield

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
)

// Path is the attribute of a field path, and whether there is one: "resourceGroups[0].flavors[1].name" is
// resource_groups[0].flavors[1].name. It ends at the innermost attribute: Path ignores the rest of a field path that
// goes deeper, or that has another key than an index. It ignores a leading dot.
func Path(attributes map[string]schema.Attribute, field string) (path.Path, bool) {
	at, rest := path.Empty(), strings.TrimPrefix(field, ".")
	found := false
	for rest != "" {
		var name, index string
		name, index, rest = step(rest)
		attribute, ok := attributes[Snake(name)]
		if !ok {
			return at, found
		}
		at, found = at.AtName(Snake(name)), true
		i, err := strconv.ParseUint(index, 10, 31)
		switch a := attribute.(type) {
		case schema.SingleNestedAttribute:
			attributes = a.Attributes
		case schema.ListNestedAttribute:
			if err != nil {
				return at, found
			}
			at, attributes = at.AtListIndex(int(i)), a.NestedObject.Attributes
		case schema.ListAttribute:
			if err == nil {
				at = at.AtListIndex(int(i))
			}
			return at, found
		case schema.MapAttribute:
			if key := strings.TrimPrefix(index+rest, "."); key != "" {
				at = at.AtMapKey(key)
			}
			return at, found
		default:
			return at, found
		}
	}
	return at, found
}

// step splits off the first name of a path, and what stands in brackets after it.
func step(field string) (name, index, rest string) {
	end := strings.IndexAny(field, ".[")
	if end < 0 {
		return field, "", ""
	}
	name, rest = field[:end], field[end:]
	if bracketed, ok := strings.CutPrefix(rest, "["); ok {
		index, rest, _ = strings.Cut(bracketed, "]")
	}
	return name, index, strings.TrimPrefix(rest, ".")
}

// fieldName matches names of fields that are several words, such as whenCanBorrow.
var fieldName = regexp.MustCompile(`\b[a-z]+(?:[A-Z][a-z]*)+\b`)

// InAttributes is a sentence of the API's in the words of the configuration: names of fields that have an attribute are
// the attribute's.
func InAttributes(attributes map[string]schema.Attribute, sentence string) string {
	return fieldName.ReplaceAllStringFunc(sentence, func(field string) string {
		if name := Snake(field); hasAttribute(attributes, name) {
			return name
		}
		return field
	})
}

// subject matches a field that a rule begins with, which may be one word.
var subject = regexp.MustCompile(`(?:^|: )([a-zA-Z]+) (?:is|are|must) `)

// Root is the outermost attribute of the first field that a sentence of the API's names, and whether it names one.
func Root(attributes map[string]schema.Attribute, sentence string) (path.Path, bool) {
	if of := subject.FindStringSubmatch(sentence); of != nil && attributes[Snake(of[1])] != nil {
		return path.Root(Snake(of[1])), true
	}
	for _, field := range fieldName.FindAllString(sentence, -1) {
		for _, root := range slices.Sorted(maps.Keys(attributes)) {
			if hasAttribute(map[string]schema.Attribute{root: attributes[root]}, Snake(field)) {
				return path.Root(root), true
			}
		}
	}
	return path.Empty(), false
}

func hasAttribute(attributes map[string]schema.Attribute, name string) bool {
	if _, ok := attributes[name]; ok {
		return true
	}
	for _, attribute := range attributes {
		switch a := attribute.(type) {
		case schema.SingleNestedAttribute:
			if hasAttribute(a.Attributes, name) {
				return true
			}
		case schema.ListNestedAttribute:
			if hasAttribute(a.NestedObject.Attributes, name) {
				return true
			}
		}
	}
	return false
}
