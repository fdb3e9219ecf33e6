package provider

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
)

func TestARefreshReadsTheLabelsOfTheStateAndThoseThatTheProviderWrote(t *testing.T) {
	client, err := cluster.New(cluster.Config{Host: "https://127.0.0.1:1", FieldManager: "us"})
	if err != nil {
		t.Fatal(err)
	}
	object := &metav1.ObjectMeta{
		Labels: map[string]string{"taken-over": "theirs", "ours": "1", "foreign": "x"},
		ManagedFields: []metav1.ManagedFieldsEntry{
			{Manager: "us", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:ours":{}}}}`)},
			{Manager: "kubectl", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:taken-over":{},"f:foreign":{}}}}`)},
		},
	}
	text := func(entries map[string]string) types.Map {
		values := map[string]attr.Value{}
		for key, value := range entries {
			values[key] = types.StringValue(value)
		}
		return types.MapValueMust(types.StringType, values)
	}
	for name, test := range map[string]struct{ state, want types.Map }{
		"one that somebody else has changed since":       {text(map[string]string{"taken-over": "mine", "ours": "1"}), text(map[string]string{"taken-over": "theirs", "ours": "1"})},
		"one that somebody has removed":                  {text(map[string]string{"gone": "1"}), text(map[string]string{"ours": "1"})},
		"one that the provider wrote and the state lost": {types.MapNull(types.StringType), text(map[string]string{"ours": "1"})},
	} {
		t.Run(name, func(t *testing.T) {
			got, diags := ownedEntries(client, object, "labels", test.state)
			if diags.HasError() || !got.Equal(test.want) {
				t.Errorf("%v, %v; want %v", got, diags, test.want)
			}
		})
	}
	if got, diags := ownedEntries(client, &metav1.ObjectMeta{Labels: map[string]string{"foreign": "x"}}, "labels", types.MapNull(types.StringType)); diags.HasError() || !got.IsNull() {
		t.Errorf("without labels of ours: %v, %v; want null", got, diags)
	}
}
