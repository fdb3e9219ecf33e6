package quantity

import (
	"context"
	"fmt"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"pgregory.net/rapid"
)

func plannedMap(t interface{ Helper() }, state, config types.Map) types.Map {
	t.Helper()
	resp := planmodifier.MapResponse{PlanValue: config}
	KeepEqual{}.PlanModifyMap(context.Background(), planmodifier.MapRequest{StateValue: state, ConfigValue: config, PlanValue: config}, &resp)
	return resp.PlanValue
}

func TestKeepEqualOnMaps(t *testing.T) {
	for behaviour, c := range map[string]struct{ state, config, want types.Map }{
		"the same amounts in other words keep the state": {
			quantities(map[string]string{"cpu": "3", "memory": "1Gi"}),
			quantities(map[string]string{"cpu": "3000m", "memory": "1024Mi"}),
			quantities(map[string]string{"cpu": "3", "memory": "1Gi"}),
		},
		"one other amount changes all of it": {
			quantities(map[string]string{"cpu": "3", "memory": "1Gi"}),
			quantities(map[string]string{"cpu": "3000m", "memory": "2Gi"}),
			quantities(map[string]string{"cpu": "3000m", "memory": "2Gi"}),
		},
		"one entry more is a change": {
			quantities(map[string]string{"cpu": "3"}),
			quantities(map[string]string{"cpu": "3000m", "memory": "1Gi"}),
			quantities(map[string]string{"cpu": "3000m", "memory": "1Gi"}),
		},
		"no state yet":            {types.MapNull(Type{}), quantities(map[string]string{"cpu": "3"}), quantities(map[string]string{"cpu": "3"})},
		"no configuration more":   {quantities(map[string]string{"cpu": "3"}), types.MapNull(Type{}), types.MapNull(Type{})},
		"an unknown map":          {quantities(map[string]string{"cpu": "3"}), types.MapUnknown(Type{}), types.MapUnknown(Type{})},
		"an unknown entry":        {quantities(map[string]string{"cpu": "3"}), withUnknown(), withUnknown()},
		"two maps with no entry":  {quantities(nil), quantities(nil), quantities(nil)},
		"an empty one is no null": {types.MapNull(Type{}), quantities(nil), quantities(nil)},
	} {
		t.Run(behaviour, func(t *testing.T) {
			if got := plannedMap(t, c.state, c.config); !got.Equal(c.want) {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func withUnknown() types.Map {
	return types.MapValueMust(Type{}, map[string]attr.Value{"cpu": Unknown()})
}

// TestKeepEqualIsStateOrConfiguration holds Terraform's rule: a planned value is one of the two, whole.
func TestKeepEqualIsStateOrConfiguration(t *testing.T) {
	draw := func(t *rapid.T, label string) types.Map {
		entries := map[string]string{}
		for _, key := range []string{"cpu", "memory"} {
			milli := rapid.Int64Range(1, 3).Draw(t, label+" "+key)
			entries[key] = rapid.SampledFrom([]string{fmt.Sprint(milli), fmt.Sprintf("%dm", 1000*milli), fmt.Sprintf("%de0", milli)}).Draw(t, label+" spelling")
		}
		return quantities(entries)
	}
	rapid.Check(t, func(t *rapid.T) {
		state, config := draw(t, "state"), draw(t, "config")
		planned := plannedMap(t, state, config)
		if equal(state, config) && !planned.Equal(state) {
			t.Fatalf("state %s and config %s are equal, planned %s", state, config, planned)
		}
		if !equal(state, config) && !planned.Equal(config) {
			t.Fatalf("state %s and config %s differ, planned %s", state, config, planned)
		}
	})
}

func TestKeepEqualOnObjectsAndStrings(t *testing.T) {
	shape := map[string]attr.Type{"requests": types.MapType{ElemType: Type{}}, "limits": types.MapType{ElemType: Type{}}}
	object := func(requests, limits types.Map) types.Object {
		return types.ObjectValueMust(shape, map[string]attr.Value{"requests": requests, "limits": limits})
	}
	state := object(quantities(map[string]string{"cpu": "3"}), types.MapNull(Type{}))
	for behaviour, c := range map[string]struct{ config, want types.Object }{
		"equal in all places":    {object(quantities(map[string]string{"cpu": "3000m"}), types.MapNull(Type{})), state},
		"another amount inside":  {object(quantities(map[string]string{"cpu": "4"}), types.MapNull(Type{})), object(quantities(map[string]string{"cpu": "4"}), types.MapNull(Type{}))},
		"a map that was not set": {object(quantities(map[string]string{"cpu": "3000m"}), quantities(map[string]string{"cpu": "3"})), object(quantities(map[string]string{"cpu": "3000m"}), quantities(map[string]string{"cpu": "3"}))},
	} {
		t.Run("an object "+behaviour, func(t *testing.T) {
			resp := planmodifier.ObjectResponse{PlanValue: c.config}
			KeepEqual{}.PlanModifyObject(t.Context(), planmodifier.ObjectRequest{StateValue: state, ConfigValue: c.config, PlanValue: c.config}, &resp)
			if !resp.PlanValue.Equal(c.want) {
				t.Errorf("got %s, want %s", resp.PlanValue, c.want)
			}
		})
	}
	t.Run("a single quantity", func(t *testing.T) {
		config := types.StringValue("3000m")
		resp := planmodifier.StringResponse{PlanValue: config}
		KeepEqual{}.PlanModifyString(t.Context(), planmodifier.StringRequest{StateValue: types.StringValue("3"), ConfigValue: config, PlanValue: config}, &resp)
		if resp.PlanValue.ValueString() != "3" {
			t.Errorf("got %s", resp.PlanValue)
		}
	})
}
