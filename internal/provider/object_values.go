package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/provider/apifield"
)

// values are a resource's attributes in configuration, plan or state.
type values map[string]tftypes.Value

// valuesOf are the attributes of an object; none of a null one.
func valuesOf(raw tftypes.Value) values {
	attributes := map[string]tftypes.Value{}
	if !raw.IsNull() && raw.IsKnown() {
		_ = raw.As(&attributes) // a resource's value is an object
	}
	return maps.Clone(attributes) // As gives the value's own map
}

// text is a string attribute; "" where it is null, unknown or missing.
func (v values) text(attribute string) string {
	text, _ := apifield.Expand(v[attribute]).(string)
	return text
}

func (v values) setText(attribute, text string) {
	v[attribute] = tftypes.NewValue(tftypes.String, text)
}

// timeout is what timeouts says of an operation, or objectTimeout.
func (v values) timeout(operation string) time.Duration {
	texts, _ := apifield.Expand(v["timeouts"]).(map[string]any)
	text, _ := texts[operation].(string)
	if timeout, err := time.ParseDuration(text); err == nil {
		return timeout
	}
	return objectTimeout
}

// isField says whether an attribute is a field of the object; the others are metadata and what Terraform is to do.
func isField(attribute string) bool {
	switch attribute {
	case "name", "namespace", "labels", "annotations", "uid", "wait_for", "timeouts":
		return false
	default:
		return true
	}
}

// fields are the attributes that are fields of the object.
func (k kind[T]) fields(ctx context.Context) map[string]schema.Attribute {
	fields := k.attributes(ctx).Attributes
	for name := range fields {
		if !isField(name) {
			delete(fields, name)
		}
	}
	return fields
}

// raw is an object of the attributes, of the schema's type; those that are missing are null.
func (k kind[T]) raw(ctx context.Context, v values) tftypes.Value {
	all := values{}
	types := map[string]tftypes.Type{}
	for name, attribute := range k.attributes(ctx).Attributes {
		types[name] = attribute.GetType().TerraformType(ctx)
		value, ok := v[name]
		if !ok {
			value = tftypes.NewValue(types[name], nil)
		}
		all[name] = value
	}
	return tftypes.NewValue(tftypes.Object{AttributeTypes: types}, map[string]tftypes.Value(all))
}

// group is the API group of the kind.
func (k kind[T]) group() string {
	group, _, _ := strings.Cut(k.apiVersion, "/")
	return group
}

// importID is what terraform import takes.
func (k kind[T]) importID(v values) string {
	if k.namespaced {
		return v.text("namespace") + "/" + v.text("name")
	}
	return v.text("name")
}

func (k kind[T]) subject(ctx context.Context, v values) subject {
	return subject{resourceType: TypeName + "_" + k.name, importID: k.importID(v), attributes: k.fields(ctx)}
}

// expand is the object that attributes describe. Its error is a value that the API's field cannot hold.
func (k kind[T]) expand(v values) (T, error) {
	body := map[string]any{}
	for name, value := range v {
		if expanded := apifield.Expand(value); isField(name) && expanded != nil {
			body[apifield.Camel(name)] = expanded
		}
	}
	if k.below != "" {
		body = map[string]any{k.below: body}
	}
	metadata := map[string]any{}
	for _, name := range []string{"name", "namespace", "labels", "annotations"} {
		if expanded := apifield.Expand(v[name]); expanded != nil {
			metadata[name] = expanded
		}
	}
	body["metadata"] = metadata
	object := k.empty()
	text, err := json.Marshal(body)
	if err == nil {
		err = json.Unmarshal(text, object)
	}
	return object, err
}

// flatten takes over the fields of an object.
func (k kind[T]) flatten(ctx context.Context, v values, live T) error {
	body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return err
	}
	if k.below != "" {
		body, _ = body[k.below].(map[string]any)
	}
	for name, value := range apifield.Flatten(ctx, k.fields(ctx), body, v) {
		v[name] = value
	}
	return nil
}

// read takes over what the cluster says of an object.
func (k kind[T]) read(ctx context.Context, client *cluster.Client, v values, live T) diag.Diagnostics {
	var diags diag.Diagnostics
	if err := k.flatten(ctx, v, live); err != nil {
		diags.AddError(fmt.Sprintf("Cannot read %s %s", k.title, live.GetName()), err.Error())
		return diags
	}
	v.setText("name", live.GetName())
	if k.namespaced {
		v.setText("namespace", live.GetNamespace())
	}
	v.setText("uid", string(live.GetUID()))
	for _, field := range []string{"labels", "annotations"} {
		var before map[string]tftypes.Value
		if prior := v[field]; !prior.IsNull() {
			_ = prior.As(&before) // a map, as the schema has it
		}
		texts, more := ownedTexts(client, live, field, before)
		diags.Append(more...)
		if len(texts) > 0 || before != nil {
			v[field] = textMap(texts)
		}
	}
	k.setDefaults(v)
	return diags
}

// setDefaults gives an imported or moved object what the cluster does not hold.
func (k kind[T]) setDefaults(v values) {
	if k.active != nil && v["wait_for"].IsNull() {
		v.setText("wait_for", waitForCreated)
	}
}

// textMap is a map of strings.
func textMap(texts map[string]string) tftypes.Value {
	entries := map[string]tftypes.Value{}
	for key, text := range texts {
		entries[key] = tftypes.NewValue(tftypes.String, text)
	}
	return tftypes.NewValue(tftypes.Map{ElementType: tftypes.String}, entries)
}
