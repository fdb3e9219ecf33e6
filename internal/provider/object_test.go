package provider

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// plainObject is an object[T] of whatever T.
type plainObject interface {
	resource.ResourceWithModifyPlan
	description() (resourceType, title, parentField string, namespaced bool)
	// configure converts an object in the API's JSON to a configuration.
	configure(ctx context.Context, text string) (tftypes.Value, error)
}

func (o *object[T]) description() (resourceType, title, parentField string, namespaced bool) {
	return TypeName + "_" + o.name, o.title, o.parentField, o.namespaced
}

func (o *object[T]) configure(ctx context.Context, text string) (tftypes.Value, error) {
	object := o.empty()
	if err := json.Unmarshal([]byte(text), object); err != nil {
		return tftypes.Value{}, err
	}
	v := values{}
	if err := o.flatten(ctx, v, object); err != nil {
		return tftypes.Value{}, err
	}
	v.setText("name", object.GetName())
	if o.namespaced {
		v.setText("namespace", "default")
	}
	return o.raw(ctx, v), nil
}

// kueueObjects are the resources of Kueue's kinds by their types.
func kueueObjects(t *testing.T) map[string]plainObject {
	t.Helper()
	objects := map[string]plainObject{}
	for _, resource := range (&elastic{}).Resources(t.Context()) {
		if object, ok := resource().(plainObject); ok {
			if resourceType, _, _, _ := object.description(); resourceType != "elastic_priority_class" {
				objects[resourceType] = object
			}
		}
	}
	if len(objects) != 7 {
		t.Fatalf("there are %d kinds: %v", len(objects), slices.Sorted(maps.Keys(objects)))
	}
	return objects
}

// document is the API's JSON of an object: its own fields, or those below spec.
func document(object plainObject, fields string) string {
	_, _, parentField, _ := object.description()
	if parentField != "" {
		fields = `{"` + parentField + `":` + fields + `}`
	}
	return strings.TrimSuffix(fields, "}") + `,"metadata":{"name":"x"}}`
}

func configurationOf(t *testing.T, object plainObject, fields string) tftypes.Value {
	t.Helper()
	config, err := object.configure(t.Context(), document(object, fields))
	if err != nil {
		t.Fatalf("%s: %v", fields, err)
	}
	return config
}

// validate validates a configuration with the provider, as terraform validate does.
func validate(t *testing.T, resourceType string, config tftypes.Value) []*tfprotov6.Diagnostic {
	t.Helper()
	server, _ := server(t)
	encoded, err := tfprotov6.NewDynamicValue(config.Type(), config)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := server.ValidateResourceConfig(t.Context(), &tfprotov6.ValidateResourceConfigRequest{TypeName: resourceType, Config: &encoded})
	if err != nil {
		t.Fatal(err)
	}
	return resp.Diagnostics
}

// where is the path of a diagnostic: resource_groups[0].flavors.
func where(d *tfprotov6.Diagnostic) string {
	var b strings.Builder
	if d.Attribute == nil {
		return ""
	}
	for _, step := range d.Attribute.Steps() {
		switch step := step.(type) {
		case tftypes.AttributeName:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(string(step))
		case tftypes.ElementKeyInt:
			b.WriteString("[" + string(rune('0'+step)) + "]")
		case tftypes.ElementKeyString:
			b.WriteString("[" + string(step) + "]")
		}
	}
	return b.String()
}
