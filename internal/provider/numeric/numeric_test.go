package numeric_test

import (
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/elastic-training/terraform-provider-elastic/internal/provider/numeric"
)

func TestNumbersThatDoNotFitAreRefusedAndStillReadable(t *testing.T) {
	for given, want := range map[string]struct {
		whole        int64
		refusesWhole string
		float        float64
		refusesFloat string
	}{
		"7":                   {whole: 7, float: 7},
		"-5.5":                {whole: -5, refusesWhole: "n is -5.5; it must be a whole number.", float: -5.5},
		"9223372036854775808": {whole: math.MaxInt64, refusesWhole: "n is 9223372036854775808; it must be between", float: 1 << 63},
		"1e400":               {whole: math.MaxInt64, refusesWhole: "n is 1e+400; it must be between", float: math.MaxFloat64, refusesFloat: "n is 1e+400"},
		"-1e400":              {whole: math.MinInt64, refusesWhole: "n is -1e+400; it must be between", float: -math.MaxFloat64, refusesFloat: "n is -1e+400"},
		"1e-400":              {refusesWhole: "it must be a whole number", refusesFloat: "n is 1e-400"},
	} {
		t.Run(given, func(t *testing.T) {
			n, _, err := big.ParseFloat(given, 10, 512, big.ToNearestEven)
			if err != nil {
				t.Fatal(err)
			}
			in := tftypes.NewValue(tftypes.Number, n)
			refuses(t, numeric.Int64{}.Validate(t.Context(), in, path.Root("n")), want.refusesWhole)
			refuses(t, numeric.Float64{}.Validate(t.Context(), in, path.Root("n")), want.refusesFloat)
			for kind, value := range map[attr.Type]attr.Value{numeric.Int64{}: types.Int64Value(want.whole), numeric.Float64{}: types.Float64Value(want.float)} {
				if got, err := kind.ValueFromTerraform(t.Context(), in); err != nil || !got.Equal(value) {
					t.Errorf("%s: got %s (%v), want %s", kind, got, err, value)
				}
			}
		})
	}
}

func refuses(t *testing.T, diags diag.Diagnostics, want string) {
	t.Helper()
	if diags.HasError() != (want != "") || want != "" && !strings.Contains(diags[0].Detail(), want) {
		t.Errorf("got %v, want %q", diags, want)
	}
}

func TestWhatIsNotKnownOrNotThereIsNoNumber(t *testing.T) {
	for _, in := range []tftypes.Value{tftypes.NewValue(tftypes.Number, nil), tftypes.NewValue(tftypes.Number, tftypes.UnknownValue)} {
		for _, kind := range []interface {
			attr.Type
		}{numeric.Int64{}, numeric.Float64{}} {
			got, err := kind.ValueFromTerraform(t.Context(), in)
			if err != nil || got.IsNull() != in.IsNull() || got.IsUnknown() == in.IsKnown() {
				t.Errorf("%s: %s becomes %s (%v)", kind, in, got, err)
			}
		}
	}
}

func TestAllNumbersOfASchemaGetTheTypes(t *testing.T) {
	inner := func() map[string]schema.Attribute {
		return map[string]schema.Attribute{"whole": schema.Int64Attribute{Optional: true}, "float": schema.Float64Attribute{Optional: true}}
	}
	attributes := numeric.Attributes(map[string]schema.Attribute{
		"whole": schema.Int64Attribute{Optional: true},
		"one":   schema.SingleNestedAttribute{Optional: true, Attributes: inner()},
		"many":  schema.ListNestedAttribute{Optional: true, NestedObject: schema.NestedAttributeObject{Attributes: inner()}},
		"named": schema.MapNestedAttribute{Optional: true, NestedObject: schema.NestedAttributeObject{Attributes: inner()}},
	})
	found := 0
	var walk func(attributes map[string]schema.Attribute)
	walk = func(attributes map[string]schema.Attribute) {
		for name, attribute := range attributes {
			switch a := attribute.(type) {
			case schema.SingleNestedAttribute:
				walk(a.Attributes)
			case schema.ListNestedAttribute:
				walk(a.NestedObject.Attributes)
			case schema.MapNestedAttribute:
				walk(a.NestedObject.Attributes)
			default:
				found++
				switch a.GetType().(type) {
				case numeric.Int64, numeric.Float64:
				default:
					t.Errorf("%s has the type %s", name, a.GetType())
				}
			}
		}
	}
	walk(attributes)
	if found != 7 {
		t.Errorf("found %d numbers", found)
	}
}
