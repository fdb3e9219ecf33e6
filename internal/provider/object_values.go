package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/canonical"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/provider/apifield"
	"github.com/elastic-training/terraform-provider-elastic/internal/provider/numeric"
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

func (v values) setTextOrNull(attribute, text string) {
	v[attribute] = tftypes.NewValue(tftypes.String, nil)
	if text != "" {
		v.setText(attribute, text)
	}
}

// timeout is the timeout of an operation, or objectTimeout.
func (v values) timeout(operation string) time.Duration {
	texts, _ := apifield.Expand(v["timeouts"]).(map[string]any)
	text, _ := texts[operation].(string)
	if timeout, err := time.ParseDuration(text); err == nil {
		return timeout
	}
	return objectTimeout
}

// isField reports whether an attribute is a field of the object; the others are metadata and what Terraform is to do.
func isField(attribute string) bool {
	switch attribute {
	case "name", "generate_name", "namespace", "labels", "annotations", "uid", "wait_for", "timeouts":
		return false
	default:
		return true
	}
}

// layout is the information that follows from the schema of a kind.
type layout struct {
	once   sync.Once
	schema schema.Schema
	types  map[string]tftypes.Type     // of all attributes
	fields map[string]schema.Attribute // the attributes that are fields of the object
}

// laidOut is the layout of the kind, which is shared and must not be changed.
func (k *kind[T]) laidOut(ctx context.Context) *layout {
	k.layout.once.Do(func() {
		k.layout.schema = k.attributes(ctx)
		numeric.Attributes(k.layout.schema.Attributes)
		k.layout.types, k.layout.fields = map[string]tftypes.Type{}, map[string]schema.Attribute{}
		for name, attribute := range k.layout.schema.Attributes {
			k.layout.types[name] = attribute.GetType().TerraformType(ctx)
			if isField(name) {
				k.layout.fields[name] = attribute
			}
		}
	})
	return &k.layout
}

// raw is an object of the attributes, of the schema's type; those that are missing are null.
func (k *kind[T]) raw(ctx context.Context, v values) tftypes.Value {
	types := k.laidOut(ctx).types
	all := map[string]tftypes.Value{}
	for name, kind := range types {
		value, ok := v[name]
		if !ok {
			value = tftypes.NewValue(kind, nil)
		}
		all[name] = value
	}
	return tftypes.NewValue(tftypes.Object{AttributeTypes: types}, all)
}

// group is the API group of the kind.
func (k *kind[T]) group() string {
	group, _, _ := strings.Cut(k.apiVersion, "/")
	return group
}

// importID is the argument of terraform import.
func (k *kind[T]) importID(v values) string {
	if k.namespaced {
		return v.text("namespace") + "/" + v.text("name")
	}
	return v.text("name")
}

func (k *kind[T]) subject(ctx context.Context, v values) subject {
	return subject{resourceType: TypeName + "_" + k.name, importID: k.importID(v), attributes: k.laidOut(ctx).fields}
}

// expand is the object that attributes describe. Its error is a value that the API's field cannot hold.
func (k *kind[T]) expand(v values) (T, error) {
	body := map[string]any{}
	for name, value := range v {
		if expanded := apifield.Expand(value); isField(name) && expanded != nil {
			body[apifield.Camel(name)] = expanded
		}
	}
	if k.parentField != "" {
		body = map[string]any{k.parentField: body}
	}
	metadata := map[string]any{}
	for _, name := range []string{"name", "generate_name", "namespace", "labels", "annotations"} {
		if expanded := apifield.Expand(v[name]); expanded != nil {
			metadata[apifield.Camel(name)] = expanded
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

// same reports whether two values of the resource make the same object, and whether an apply does the same about it.
func (k *kind[T]) same(ctx context.Context) func(a, b tftypes.Value) bool {
	isObject := map[string]bool{"name": true, "generate_name": true, "namespace": true, "labels": true, "annotations": true}
	for name := range k.laidOut(ctx).fields {
		isObject[name] = true
	}
	of := func(raw tftypes.Value) (T, bool) {
		object, err := k.expand(valuesOf(raw))
		if err == nil {
			canonical.Rewrite(object)
		}
		return object, err == nil
	}
	return func(a, b tftypes.Value) bool {
		if !sameOtherwise(k.laidOut(ctx).schema.Attributes, a, b, isObject, objectTimeout) {
			return false
		}
		was, okWas := of(a)
		is, okIs := of(b)
		return okWas && okIs && equality.Semantic.DeepEqual(was, is)
	}
}

// flatten copies the fields of an object.
func (k *kind[T]) flatten(ctx context.Context, v values, live T) error {
	body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return err
	}
	if k.parentField != "" {
		body, _ = body[k.parentField].(map[string]any)
	}
	maps.Copy(v, apifield.Flatten(ctx, k.laidOut(ctx).fields, body, v))
	return nil
}

// read copies the state of an object in the cluster to the attributes.
func (k *kind[T]) read(ctx context.Context, client *cluster.Client, v values, live T) diag.Diagnostics {
	var diags diag.Diagnostics
	if err := k.flatten(ctx, v, live); err != nil {
		diags.AddError(fmt.Sprintf("Cannot read %s %s", k.title, live.GetName()), err.Error())
		return diags
	}
	v.setText("name", live.GetName())
	v.setTextOrNull("generate_name", live.GetGenerateName())
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

// setDefaults sets the attributes of an imported or moved object that the cluster does not hold.
func (k *kind[T]) setDefaults(v values) {
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
