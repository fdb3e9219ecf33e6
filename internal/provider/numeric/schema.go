package numeric

import (
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
)

// Attributes sets the types of this package for all numbers of a resource's schema, at any depth, and returns the same
// map. A schema passes through it once, so that no attribute can be forgotten.
func Attributes(attributes map[string]schema.Attribute) map[string]schema.Attribute {
	for name, attribute := range attributes {
		switch a := attribute.(type) {
		case schema.Int64Attribute:
			a.CustomType = Int64{}
			attributes[name] = a
		case schema.Float64Attribute:
			a.CustomType = Float64{}
			attributes[name] = a
		case schema.SingleNestedAttribute:
			Attributes(a.Attributes)
		case schema.ListNestedAttribute:
			Attributes(a.NestedObject.Attributes)
		case schema.MapNestedAttribute:
			Attributes(a.NestedObject.Attributes)
		}
	}
	return attributes
}
