package provider

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/elastic-training/terraform-provider-elastic/internal/provider/apifield"
)

// stateOf is a state as JSON-like values by the attributes' names in the API's words.
func stateOf(t *testing.T, object plainObject, state *tfprotov6.DynamicValue) map[string]any {
	t.Helper()
	var resp resource.SchemaResponse
	object.Schema(t.Context(), resource.SchemaRequest{}, &resp)
	value, err := state.Unmarshal(resp.Schema.Type().TerraformType(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	expanded, _ := apifield.Expand(value).(map[string]any)
	return expanded
}

func TestKueueObjectsAreImportedByNameAndByIdentity(t *testing.T) {
	server, _ := server(t)
	identities, err := server.GetResourceIdentitySchemas(t.Context(), &tfprotov6.GetResourceIdentitySchemasRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for resourceType, object := range kueueObjects(t) {
		_, _, _, namespaced := object.description()
		id, want := "x", map[string]any{"name": "x"}
		if namespaced {
			id, want["namespace"] = "team-a/x", "team-a"
		}
		kinds, values := map[string]tftypes.Type{}, map[string]tftypes.Value{}
		for _, attribute := range identities.IdentitySchemas[resourceType].IdentityAttributes {
			if !attribute.RequiredForImport {
				t.Errorf("%s: %s is not required for import", resourceType, attribute.Name)
			}
			text, _ := want[attribute.Name].(string)
			kinds[attribute.Name], values[attribute.Name] = tftypes.String, str(text)
		}
		if len(kinds) != len(want) {
			t.Errorf("%s: its identity is %v", resourceType, kinds)
		}
		kind := tftypes.Object{AttributeTypes: kinds}
		identity, err := tfprotov6.NewDynamicValue(kind, tftypes.NewValue(kind, values))
		if err != nil {
			t.Fatal(err)
		}
		for by, req := range map[string]*tfprotov6.ImportResourceStateRequest{
			"id":       {TypeName: resourceType, ID: id},
			"identity": {TypeName: resourceType, Identity: &tfprotov6.ResourceIdentityData{IdentityData: &identity}},
		} {
			resp, err := server.ImportResourceState(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			noErrors(t, resp.Diagnostics)
			if diff := cmp.Diff(want, stateOf(t, object, resp.ImportedResources[0].State)); diff != "" {
				t.Errorf("%s by %s: %s", resourceType, by, diff)
			}
			if resp.ImportedResources[0].Identity == nil {
				t.Errorf("%s by %s: no identity", resourceType, by)
			}
		}
		if !namespaced {
			continue
		}
		for _, id := range []string{"x", "/x", "a/", "a/X y"} {
			resp, err := server.ImportResourceState(t.Context(), &tfprotov6.ImportResourceStateRequest{TypeName: resourceType, ID: id})
			if err != nil {
				t.Fatal(err)
			}
			if len(resp.Diagnostics) == 0 || !strings.Contains(resp.Diagnostics[0].Detail, "NAMESPACE/NAME") {
				t.Errorf("id %q: %v", id, resp.Diagnostics)
			}
		}
	}
}

func TestKueueObjectsMoveFromManifests(t *testing.T) {
	for resourceType, c := range map[string]struct {
		fields string         // of the manifest
		want   map[string]any // besides the metadata
	}{
		"elastic_workload_priority_class": {`{"value":100,"description":"urgent"}`, map[string]any{"value": int64(100), "description": "urgent"}},
		"elastic_resource_flavor":         {`{"nodeLabels":{"a":"b"}}`, map[string]any{"nodeLabels": map[string]any{"a": "b"}, "nodeTaints": []any{}, "tolerations": []any{}}},
		"elastic_local_queue":             {`{"clusterQueue":"q"}`, map[string]any{"clusterQueue": "q", "stopPolicy": "None", "waitFor": "created", "namespace": "team-a"}},
		"elastic_cohort":                  {`{"fairSharing":{"weight":2}}`, map[string]any{"fairSharing": map[string]any{"weight": "2"}, "resourceGroups": []any{}}},
		"elastic_topology":                {`{"levels":[{"nodeLabel":"a"}]}`, map[string]any{"levels": []any{map[string]any{"nodeLabel": "a"}}}},
		"elastic_admission_check":         {`{"controllerName":"c"}`, map[string]any{"controllerName": "c", "waitFor": "created"}},
		"elastic_cluster_queue": {
			strings.ReplaceAll(groups(``, `,"namespaceSelector":{}`), `"4"`, `4`),
			map[string]any{
				"waitFor": "created", "namespaceSelector": map[string]any{}, "queueingStrategy": "BestEffortFIFO", "stopPolicy": "None",
				"preemption":        map[string]any{"withinClusterQueue": "Never", "reclaimWithinCohort": "Never", "borrowWithinCohort": map[string]any{"policy": "Never"}},
				"flavorFungibility": map[string]any{"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor"},
				"resourceGroups": []any{map[string]any{"coveredResources": []any{"cpu"}, "flavors": []any{map[string]any{
					"name": "spot", "resources": []any{map[string]any{"name": "cpu", "nominalQuota": "4"}},
				}}}},
			},
		},
	} {
		t.Run(resourceType, func(t *testing.T) {
			object := kueueObjects(t)[resourceType]
			_, title, _, _ := object.description()
			manifest := strings.Replace(document(object, c.fields), `"metadata":{"name":"x"}`, fmt.Sprintf(
				`"apiVersion":"kueue.x-k8s.io/v1beta2","kind":%q,"metadata":{"name":"x","namespace":"team-a","labels":{"team":"ml"}}`, title), 1)
			state := fmt.Sprintf(`{"manifest":{"type":["object",{}],"value":%s},"object":{"type":["object",{}],"value":{"metadata":{"name":"x","uid":"u-1"}}},"wait":[]}`, manifest)
			want := map[string]any{"name": "x", "uid": "u-1", "labels": map[string]any{"team": "ml"}}
			for name, value := range c.want {
				want[name] = value
			}
			resp := move(t, resourceType, state)
			noErrors(t, resp.Diagnostics)
			if diff := cmp.Diff(want, stateOf(t, object, resp.TargetState)); diff != "" {
				t.Error(diff)
			}
			if resp.TargetIdentity == nil {
				t.Error("no identity")
			}
			for refusal, state := range map[string]string{
				"another version": strings.Replace(state, "v1beta2", "v1alpha1", 1),
				"another kind":    strings.Replace(state, title, "Something", 1),
				"no name":         strings.ReplaceAll(state, `"name":"x"`, `"name":""`),
				"no manifest":     `{"manifest":null}`,
				"damage":          `{"manifest":7}`,
			} {
				if resp := move(t, resourceType, state); len(resp.Diagnostics) == 0 {
					t.Errorf("%s is no error", refusal)
				}
			}
		})
	}
}

func TestAManifestOfV1beta1MovesAsKueueConvertsIt(t *testing.T) {
	state := func(spec string) string {
		return `{"manifest":{"value":{"apiVersion":"kueue.x-k8s.io/v1beta1","kind":"ClusterQueue","metadata":{"name":"x"},"spec":` + spec + `}},"object":{"value":{"metadata":{"name":"x","uid":"u-1"}}}}`
	}
	resp := move(t, "elastic_cluster_queue", state(`{"cohort":"c","admissionChecks":["a"],"namespaceSelector":{}}`))
	noErrors(t, resp.Diagnostics)
	got := stateOf(t, kueueObjects(t)["elastic_cluster_queue"], resp.TargetState)
	want := map[string]any{"cohortName": "c", "admissionChecksStrategy": map[string]any{"admissionChecks": []any{map[string]any{"name": "a"}}}}
	for name, value := range want {
		if diff := cmp.Diff(value, got[name]); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
	resp = move(t, "elastic_cluster_queue", state(`{"cohrot":"c"}`))
	if len(resp.Diagnostics) == 0 || !strings.Contains(resp.Diagnostics[0].Detail, `unknown field "spec.cohrot"`) {
		t.Errorf("%v", resp.Diagnostics)
	}
}

func move(t *testing.T, resourceType, state string) *tfprotov6.MoveResourceStateResponse {
	t.Helper()
	if !json.Valid([]byte(state)) {
		t.Fatalf("the test's state is no JSON: %s", state)
	}
	server, _ := server(t)
	resp, err := server.MoveResourceState(t.Context(), &tfprotov6.MoveResourceStateRequest{
		SourceProviderAddress: "registry.terraform.io/hashicorp/kubernetes", SourceTypeName: "kubernetes_manifest", TargetTypeName: resourceType,
		SourceState: &tfprotov6.RawState{JSON: []byte(state)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return resp
}
