// Package quantity is Kubernetes' resource.Quantity as a Terraform type: "3000m" and "3" are the same value, both when
// the API server answers in its canonical form and when a plan is made.
//
// The semantic equality of Value keeps the user's spelling when a read yields another spelling of the same amount.
// Terraform does not use it at plan time: there the provider compares the objects that each spelling would create.
package quantity

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/attr/xattr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Type is the attribute type of a quantity: a string such as "500m", "3" or "4Gi".
type Type struct {
	basetypes.StringType
}

var (
	_ basetypes.StringTypable                    = Type{}
	_ basetypes.StringValuableWithSemanticEquals = Value{}
	_ xattr.ValidateableAttribute                = Value{}
	_ function.ValidateableParameter             = Value{}
)

// String names the type in messages.
func (Type) String() string { return "quantity.Type" }

// Equal holds for this type only.
func (Type) Equal(other attr.Type) bool {
	_, ok := other.(Type)
	return ok
}

// ValueType is an empty Value.
func (Type) ValueType(context.Context) attr.Value { return Value{} }

// ValueFromString makes a Value of a framework string.
func (Type) ValueFromString(_ context.Context, in basetypes.StringValue) (basetypes.StringValuable, diag.Diagnostics) {
	return Value{StringValue: in}, nil
}

// ValueFromTerraform converts a value of Terraform.
func (t Type) ValueFromTerraform(ctx context.Context, in tftypes.Value) (attr.Value, error) {
	value, err := t.StringType.ValueFromTerraform(ctx, in)
	if err != nil {
		return nil, err
	}
	text, ok := value.(basetypes.StringValue)
	if !ok {
		return nil, fmt.Errorf("unexpected value %T for a quantity", value)
	}
	return Value{StringValue: text}, nil
}

// Value is a quantity as the user spelled it.
type Value struct {
	basetypes.StringValue
}

// Type is the type of this value.
func (Value) Type(context.Context) attr.Type { return Type{} }

// Equal holds for the same spelling. StringSemanticEquals compares amounts.
func (v Value) Equal(other attr.Value) bool {
	o, ok := other.(Value)
	return ok && v.StringValue.Equal(o.StringValue)
}

// StringSemanticEquals holds for the same amount, however it is spelled.
func (v Value) StringSemanticEquals(_ context.Context, other basetypes.StringValuable) (bool, diag.Diagnostics) {
	o, ok := other.(Value)
	return ok && sameAmount(v, o), nil
}

// Quantity is the amount. It fails for text that is no quantity; null and unknown are zero.
func (v Value) Quantity() (resource.Quantity, error) {
	if v.IsNull() || v.IsUnknown() {
		return resource.Quantity{}, nil
	}
	return Parse(v.ValueString())
}

// ValidateAttribute refuses text that is no quantity.
func (v Value) ValidateAttribute(_ context.Context, req xattr.ValidateAttributeRequest, resp *xattr.ValidateAttributeResponse) {
	if v.IsNull() || v.IsUnknown() {
		return
	}
	if _, err := Parse(v.ValueString()); err != nil {
		resp.Diagnostics.AddAttributeError(req.Path, "Invalid quantity", fmt.Sprintf("%s: %s", req.Path, err))
	}
}

// ValidateParameter refuses text that is no quantity, where a function takes one.
func (v Value) ValidateParameter(_ context.Context, req function.ValidateParameterRequest, resp *function.ValidateParameterResponse) {
	if v.IsNull() || v.IsUnknown() {
		return
	}
	if _, err := Parse(v.ValueString()); err != nil {
		resp.Error = function.NewArgumentFuncError(req.Position, err.Error())
	}
}

// Parse reads a quantity; its error is a sentence that offers what may have been meant.
func Parse(text string) (resource.Quantity, error) {
	if extreme(text) {
		return resource.Quantity{}, fmt.Errorf("%q is too large or too precise for a Kubernetes quantity", text)
	}
	amount, err := resource.ParseQuantity(text)
	switch {
	case err == nil && !writable(amount):
		return resource.Quantity{}, fmt.Errorf("%q is too large or too precise for a Kubernetes quantity, which would be %s", text, amount.String())
	case err == nil:
		return amount, nil
	}
	if meant := suggestions(text); meant != "" {
		return resource.Quantity{}, fmt.Errorf("%q is not a Kubernetes quantity; did you mean %s?", text, meant)
	}
	return resource.Quantity{}, fmt.Errorf(`%q is not a Kubernetes quantity: write a number, or a number with a suffix, such as "500m", "3" or "4Gi"`, text)
}

// mostDigits bounds the length and the decimal exponent of a quantity. 2^63, beyond which Kubernetes keeps no amount
// exactly, has 19 digits; a nano-unit has an exponent of -9.
const mostDigits = 64

var exponent = regexp.MustCompile(`[eE]([+-]?[0-9]+)$`)

// extreme reports whether text is too long, or has too large an exponent, to be given to ParseQuantity: its time grows
// with the amount that the text stands for, and 1e-999999999 takes minutes.
func extreme(text string) bool {
	if len(text) > mostDigits {
		return true
	}
	match := exponent.FindStringSubmatch(text)
	if match == nil {
		return false
	}
	power, err := strconv.Atoi(match[1])
	return err != nil || power > mostDigits || power < -mostDigits
}

// writable reports whether an amount has a spelling. The API server stores amounts by their spelling, which for some
// amounts outside the range of an int64 stands for another one: 1000E is written as "1".
func writable(amount resource.Quantity) bool {
	again, err := resource.ParseQuantity(amount.String())
	return err == nil && again.Cmp(amount) == 0
}

// Canonical is the API server's spelling of an amount: "3" for "3000m", "1Gi" for "1024Mi".
func Canonical(text string) (string, error) {
	amount, err := Parse(text)
	if err != nil {
		return "", err
	}
	return amount.String(), nil
}

var spelled = regexp.MustCompile(`^([+-]?[0-9]+(?:\.[0-9]*)?|[+-]?\.[0-9]+)\s*([A-Za-z]+)$`)

// suggestions are spellings that are quantities, for the usual mistakes: bytes as "GB", small "k" as "K", a blank.
func suggestions(text string) string {
	match := spelled.FindStringSubmatch(strings.TrimSpace(text))
	if match == nil {
		return ""
	}
	number, unit := match[1], strings.ToLower(match[2])
	unit = strings.TrimSuffix(strings.TrimSuffix(unit, "ytes"), "b")
	var meant []string
	for _, suffix := range []string{"k", "Ki", "M", "Mi", "G", "Gi", "T", "Ti", "P", "Pi", "E", "Ei", "m"} {
		lower := strings.ToLower(suffix)
		if unit != lower && unit+"i" != lower || suffix == "m" && match[2] != "m" {
			continue
		}
		if _, err := Parse(number + suffix); err == nil {
			meant = append(meant, number+suffix)
		}
	}
	if unit == "" || unit == "cpu" || unit == "cores" || unit == "core" {
		meant = append(meant, number)
	}
	return strings.Join(meant, " or ")
}

// sameAmount holds for equal amounts; text that is no quantity is only equal to itself.
func sameAmount(a, b Value) bool {
	if a.IsNull() || b.IsNull() || a.IsUnknown() || b.IsUnknown() {
		return a.StringValue.Equal(b.StringValue)
	}
	x, errX := Parse(a.ValueString())
	y, errY := Parse(b.ValueString())
	if errX != nil || errY != nil {
		return a.ValueString() == b.ValueString()
	}
	return x.Cmp(y) == 0
}

// NotNegative refuses amounts below zero.
func NotNegative() validator.String { return notNegative{} }

type notNegative struct{}

func (notNegative) Description(context.Context) string { return "must not be negative" }

func (m notNegative) MarkdownDescription(ctx context.Context) string { return m.Description(ctx) }

func (m notNegative) ValidateString(ctx context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	amount, err := Parse(req.ConfigValue.ValueString())
	if err != nil {
		return // the type reports it already
	}
	if amount.Sign() < 0 {
		resp.Diagnostics.AddAttributeError(req.Path, "Quantity out of range",
			fmt.Sprintf("%s is %q; it %s.", req.Path, req.ConfigValue.ValueString(), m.Description(ctx)))
	}
}
