package quantity

import (
	"fmt"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr/xattr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
)

func TestTheSameAmountIsTheSameValue(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"3000m", "3", true},
		{"1024Mi", "1Gi", true},
		{"0.25", "250m", true},
		{"1000", "1k", true},
		{"1e3", "1k", true},
		{"1G", "1Gi", false},
		{"1", "2", false},
		{"0", "-0", true},
		{"100Ei", "102400Pi", true},
	} {
		t.Run(fmt.Sprintf("%s and %s: %t", c.a, c.b, c.same), func(t *testing.T) {
			got, diags := known(c.a).StringSemanticEquals(t.Context(), known(c.b))
			if got != c.same || diags.HasError() {
				t.Errorf("got %t, %v", got, diags)
			}
		})
	}
	t.Run("null is no amount", func(t *testing.T) {
		if got, _ := null().StringSemanticEquals(t.Context(), known("0")); got {
			t.Error("null equals zero")
		}
	})
}

// spelling draws a quantity in any of the ways in which one may be written.
func spelling() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		number := fmt.Sprint(rapid.IntRange(0, 1_000_000).Draw(t, "number"))
		if rapid.Bool().Draw(t, "fraction") {
			number += "." + rapid.StringMatching(`[0-9]{1,3}`).Draw(t, "decimals")
		}
		suffix := rapid.SampledFrom([]string{"", "m", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti", "e3", "e-3", "E2"}).Draw(t, "suffix")
		return number + suffix
	})
}

func TestCanonicalIsARoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := spelling().Draw(t, "quantity")
		canonical, err := Canonical(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		again, err := Canonical(canonical)
		if err != nil || again != canonical {
			t.Fatalf("%q is canonically %q, and that %q (%v)", text, canonical, again, err)
		}
		if same, _ := known(text).StringSemanticEquals(t.Context(), known(canonical)); !same {
			t.Fatalf("%q and its canonical form %q differ", text, canonical)
		}
	})
}

func TestEqualityIsThatOfTheAmounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := spelling().Draw(t, "a"), spelling().Draw(t, "b")
		x, y := resource.MustParse(a), resource.MustParse(b)
		if got := sameAmount(known(a), known(b)); got != (x.Cmp(y) == 0) {
			t.Fatalf("%q and %q: %t", a, b, got)
		}
		if sameAmount(known(a), known(b)) != sameAmount(known(b), known(a)) {
			t.Fatalf("%q and %q: not symmetric", a, b)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"1GB", "3000m", "", "1 Gi", "0x10", "1e", "--1", "1KiB", "½", "1000E", "1e-999999999", "e6666666666666666"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		amount, err := Parse(text)
		if err != nil {
			return
		}
		if again, err := Parse(amount.String()); err != nil || again.Cmp(amount) != 0 {
			t.Errorf("%q is %s, which is read as %s (%v)", text, amount.String(), again.String(), err)
		}
	})
}

func TestWhatIsNoQuantityIsRefusedWithWhatMayBeMeant(t *testing.T) {
	for text, message := range map[string]string{
		"1GB":         `"1GB" is not a Kubernetes quantity; did you mean 1G or 1Gi?`,
		"1KB":         `"1KB" is not a Kubernetes quantity; did you mean 1k or 1Ki?`,
		"4gb":         `"4gb" is not a Kubernetes quantity; did you mean 4G or 4Gi?`,
		"512MiB":      `"512MiB" is not a Kubernetes quantity; did you mean 512Mi?`,
		"2 Gi":        `"2 Gi" is not a Kubernetes quantity; did you mean 2Gi?`,
		"2cpu":        `"2cpu" is not a Kubernetes quantity; did you mean 2?`,
		"100bytes":    `"100bytes" is not a Kubernetes quantity; did you mean 100?`,
		"1000E":       `"1000E" is too large or too precise for a Kubernetes quantity, which would be 1`,
		"1e-99999999": `"1e-99999999" is too large or too precise for a Kubernetes quantity`,
		"much":        `"much" is not a Kubernetes quantity: write a number, or a number with a suffix, such as "500m", "3" or "4Gi"`,
		"":            `"" is not a Kubernetes quantity: write a number, or a number with a suffix, such as "500m", "3" or "4Gi"`,
	} {
		t.Run(fmt.Sprintf("%q", text), func(t *testing.T) {
			var resp xattr.ValidateAttributeResponse
			known(text).ValidateAttribute(t.Context(), xattr.ValidateAttributeRequest{Path: path.Root("cpu")}, &resp)
			if len(resp.Diagnostics) != 1 || resp.Diagnostics[0].Detail() != "cpu: "+message {
				t.Errorf("got %v, want the attribute and: %s", resp.Diagnostics, message)
			}
		})
	}
	t.Run("null and unknown are fine", func(t *testing.T) {
		for _, value := range []Value{null(), unknown()} {
			var resp xattr.ValidateAttributeResponse
			value.ValidateAttribute(t.Context(), xattr.ValidateAttributeRequest{}, &resp)
			if len(resp.Diagnostics) != 0 {
				t.Errorf("%s: %v", value, resp.Diagnostics)
			}
		}
	})
}

func TestNotNegativeRefusesAmountsBelowZeroAlone(t *testing.T) {
	for _, c := range []struct {
		value types.String
		ok    bool
	}{
		{types.StringValue("1m"), true},
		{types.StringValue("0"), true},
		{types.StringValue("-1"), false},
		{types.StringValue("nonsense"), true}, // the type says so
		{types.StringNull(), true},
		{types.StringUnknown(), true},
	} {
		t.Run(c.value.String(), func(t *testing.T) {
			var resp validator.StringResponse
			NotNegative().ValidateString(t.Context(), validator.StringRequest{ConfigValue: c.value}, &resp)
			if resp.Diagnostics.HasError() == c.ok {
				t.Errorf("got %v", resp.Diagnostics)
			}
		})
	}
}

func TestTheTypeKeepsWhatTerraformSends(t *testing.T) {
	for name, in := range map[string]tftypes.Value{
		"a text":  tftypes.NewValue(tftypes.String, "3000m"),
		"null":    tftypes.NewValue(tftypes.String, nil),
		"unknown": tftypes.NewValue(tftypes.String, tftypes.UnknownValue),
	} {
		t.Run(name, func(t *testing.T) {
			value, err := Type{}.ValueFromTerraform(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := value.(Value); !ok {
				t.Fatalf("got a %T", value)
			}
			out, err := value.ToTerraformValue(t.Context())
			if err != nil || !out.Equal(in) {
				t.Errorf("got %s, %v", out, err)
			}
		})
	}
	if !(Type{}).Equal(Value{}.Type(t.Context())) || (Type{}).Equal(types.StringType) {
		t.Error("the type equals another, or not itself")
	}
}

func known(text string) Value { return Value{StringValue: basetypes.NewStringValue(text)} }

func null() Value { return Value{StringValue: basetypes.NewStringNull()} }

func unknown() Value { return Value{StringValue: basetypes.NewStringUnknown()} }
