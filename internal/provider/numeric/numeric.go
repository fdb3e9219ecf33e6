// Package numeric contains the types of numeric attributes. Terraform's numbers have any size and any fraction; for
// numbers that do not fit, the framework's own types report an error of the provider. These types accept every number,
// and report one that does not fit as an error of the configuration, at its attribute.
package numeric

import (
	"context"
	"fmt"
	"math"
	"math/big"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// Int64 is the type of whole numbers of 64 bits. Its values are the framework's own.
type Int64 struct {
	basetypes.Int64Type
}

var (
	_ basetypes.Int64Typable   = Int64{}
	_ basetypes.Float64Typable = Float64{}
)

// String names the type in messages.
func (Int64) String() string { return "numeric.Int64" }

// Equal holds for whole numbers of 64 bits, since the values are the framework's.
func (Int64) Equal(other attr.Type) bool {
	switch other.(type) {
	case Int64, basetypes.Int64Type:
		return true
	default:
		return false
	}
}

// Validate refuses a number that is no whole number of 64 bits. The framework calls it wherever it reads an attribute.
func (Int64) Validate(_ context.Context, in tftypes.Value, at path.Path) diag.Diagnostics {
	var diags diag.Diagnostics
	value := valueOf(in)
	switch {
	case value == nil:
	case !value.IsInt():
		diags.AddAttributeError(at, "Invalid integer", fmt.Sprintf("%s is %s; it must be a whole number.", at, textOf(value)))
	default:
		if _, accuracy := value.Int64(); accuracy != big.Exact {
			diags.AddAttributeError(at, "Number out of range", fmt.Sprintf("%s is %s; it must be between %d and %d.", at, textOf(value), math.MinInt64, math.MaxInt64))
		}
	}
	return diags
}

// ValueFromTerraform converts a value of Terraform. A value that Validate refuses becomes the nearest number towards
// zero.
func (t Int64) ValueFromTerraform(ctx context.Context, in tftypes.Value) (attr.Value, error) {
	if value := valueOf(in); value != nil {
		whole, _ := value.Int64()
		return basetypes.NewInt64Value(whole), nil
	}
	return t.Int64Type.ValueFromTerraform(ctx, in)
}

// Float64 is the type of numbers that a float64 holds. Its values are the framework's own.
type Float64 struct {
	basetypes.Float64Type
}

// String names the type in messages.
func (Float64) String() string { return "numeric.Float64" }

// Equal holds for floating-point numbers of 64 bits, since the values are the framework's.
func (Float64) Equal(other attr.Type) bool {
	switch other.(type) {
	case Float64, basetypes.Float64Type:
		return true
	default:
		return false
	}
}

// Validate refuses a number that is too large or too small for a float64.
func (Float64) Validate(_ context.Context, in tftypes.Value, at path.Path) diag.Diagnostics {
	var diags diag.Diagnostics
	if value := valueOf(in); value != nil && !fits(value) {
		diags.AddAttributeError(at, "Number out of range", fmt.Sprintf("%s is %s; it must be a number that 64 bits hold (from %g to %g, or 0).",
			at, textOf(value), math.SmallestNonzeroFloat64, math.MaxFloat64))
	}
	return diags
}

// ValueFromTerraform converts a value of Terraform. A value that Validate refuses becomes the nearest number.
func (t Float64) ValueFromTerraform(ctx context.Context, in tftypes.Value) (attr.Value, error) {
	if value := valueOf(in); value != nil && !fits(value) {
		nearest, _ := value.Float64()
		return basetypes.NewFloat64Value(max(-math.MaxFloat64, min(nearest, math.MaxFloat64))), nil
	}
	return t.Float64Type.ValueFromTerraform(ctx, in)
}

func fits(value *big.Float) bool {
	nearest, accuracy := value.Float64()
	return !math.IsInf(nearest, 0) && (nearest != 0 || accuracy == big.Exact)
}

// valueOf is a known number, or nil.
func valueOf(in tftypes.Value) *big.Float {
	if in.IsNull() || !in.IsKnown() || !in.Type().Is(tftypes.Number) {
		return nil
	}
	value := new(big.Float)
	if in.As(&value) != nil {
		return nil // a known number is one
	}
	return value
}

// textOf is a number in the usual notation.
func textOf(value *big.Float) string { return value.Text('g', 20) }

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
