package provider

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	plainjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/provider/apifield"
	"github.com/elastic-training/terraform-provider-elastic/internal/provider/quantity"
)

// The settings of pods and what else is nested in a job have their attributes' names in the definition of the job, too:
// a new one is an attribute in the schema and a field with its name in package trainingjob, and nothing here. In lists of
// Kubernetes' own objects, such as tolerations, the definition has the API's names.

// fieldOf is the field of a job's definition that an attribute stands for.
func fieldOf(attribute string) string {
	if kubernetesFields[attribute] {
		return apifield.Camel(attribute)
	}
	return attribute
}

// kubernetesFields are the attributes that stand for fields of Kubernetes' own objects in a pod's settings.
var kubernetesFields = listedFields(reflect.TypeFor[trainingjob.PodSettings]())

// listedFields are the attributes that stand for fields of the Kubernetes objects that a type has lists of.
func listedFields(settings reflect.Type) map[string]bool {
	names := map[string]bool{}
	var add func(reflect.Type)
	add = func(t reflect.Type) {
		for t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || !strings.HasPrefix(t.PkgPath(), "k8s.io/") {
			return
		}
		for _, field := range reflect.VisibleFields(t) {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			names[apifield.Snake(name)] = true
			add(field.Type)
		}
	}
	for _, field := range reflect.VisibleFields(settings) {
		if field.Type.Kind() == reflect.Slice {
			add(field.Type)
		}
	}
	return names
}

// podFields are the names of a pod's settings.
var podFields = func() map[string]bool {
	names := map[string]bool{}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[trainingjob.PodSettings]()) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names[name] = true
	}
	return names
}()

// pod are the settings among the attributes of an object.
func (r *expander) pod(at path.Path, object types.Object) trainingjob.PodSettings {
	var s trainingjob.PodSettings
	attributes := object.Attributes()
	maps.DeleteFunc(attributes, func(name string, _ attr.Value) bool {
		return !podFields[name] || name == "affinity" || name == "pod_overrides" // these two are JSON
	})
	r.decodeAll(at, attributes, &s)
	s.SecurityContext = canonicalSecurityContext(s.SecurityContext)
	overrides, _ := object.Attributes()["pod_overrides"].(types.String)
	s.PodOverrides = trainingjob.CanonicalOverrides(r.json(overrides))
	affinity, _ := object.Attributes()["affinity"].(types.String)
	if text := r.json(affinity); text != nil {
		s.Affinity = &corev1.Affinity{}
		if err := trainingjob.StrictDecode(text, s.Affinity); err != nil {
			r.diags.AddAttributeError(at.AtName("affinity"), "Invalid affinity",
				fmt.Sprintf("%s is not a Kubernetes Affinity: %s. Its fields are nodeAffinity, podAffinity and podAntiAffinity.", at.AtName("affinity"), err))
		}
	}
	return s
}

// withoutPod are the attributes of an object without the settings of its pods: their types, or their values.
func withoutPod[T any](attributes map[string]T) map[string]T {
	own := maps.Clone(attributes)
	maps.DeleteFunc(own, func(name string, _ T) bool { return podFields[name] })
	return own
}

// canonicalSecurityContext is nil if nothing is set: {} means the same as null.
func canonicalSecurityContext(s *trainingjob.SecurityContext) *trainingjob.SecurityContext {
	if s == nil {
		return nil
	}
	if s.SeccompProfile != nil && s.SeccompProfile.Type == "" {
		s.SeccompProfile = nil
	}
	if s.Capabilities != nil && len(s.Capabilities.Add)+len(s.Capabilities.Drop) == 0 {
		s.Capabilities = nil
	}
	if equality.Semantic.DeepEqual(*s, trainingjob.SecurityContext{}) {
		return nil
	}
	return s
}

// decode copies the value of an attribute to the API's value for it, which stays as it is if the attribute is null or
// unknown.
func (r *expander) decode(at path.Path, value attr.Value, to any) {
	if fields := r.fields(at, value); fields != nil {
		r.convert(at, fields, to)
	}
}

// decodeAll is decode for the attributes of an object.
func (r *expander) decodeAll(at path.Path, attributes map[string]attr.Value, to any) {
	fields := map[string]any{}
	for name, value := range attributes {
		if plain := r.fields(at.AtName(name), value); plain != nil {
			fields[fieldOf(name)] = plain
		}
	}
	r.convert(at, fields, to)
}

func (r *expander) convert(at path.Path, fields, to any) {
	text, err := json.Marshal(fields)
	if err == nil {
		err = trainingjob.StrictDecode(text, to)
	}
	if err != nil {
		r.diags.AddAttributeError(at, "Invalid attribute value", fmt.Sprintf("%s: %s", at, err))
	}
}

// fields is a value as JSON; nil if it is null, unknown, or has a quantity that is none.
func (r *expander) fields(at path.Path, value attr.Value) any {
	if value.IsNull() || value.IsUnknown() || !r.hasQuantities(at, value) {
		return nil
	}
	raw, err := value.ToTerraformValue(r.ctx)
	if err != nil {
		r.diags.AddAttributeError(at, "Invalid attribute value", err.Error())
		return nil
	}
	return apifield.Naming(fieldOf).Expand(raw)
}

// hasQuantities reports whether every quantity in a value is one. It uses the text of the quantities' own validation, so
// that the problem is reported once.
func (r *expander) hasQuantities(at path.Path, value attr.Value) bool {
	ok := true
	switch v := value.(type) {
	case quantity.Value:
		if v.IsNull() || v.IsUnknown() {
			return true
		}
		if _, err := v.Quantity(); err != nil {
			r.diags.AddAttributeError(at, "Invalid quantity", fmt.Sprintf("%s: %s", at, err))
			return false
		}
	case types.Object:
		for name, attribute := range v.Attributes() {
			ok = r.hasQuantities(at.AtName(name), attribute) && ok
		}
	case types.Map:
		for key, entry := range v.Elements() {
			ok = r.hasQuantities(at.AtMapKey(key), entry) && ok
		}
	case types.List:
		for i, item := range v.Elements() {
			ok = r.hasQuantities(at.AtListIndex(i), item) && ok
		}
	}
	return ok
}

// flatten is a value of the API as that of the resource's attribute; what is empty is null.
func flatten[T attr.Value](w *flattener, attribute string, live any) T {
	value, _ := w.value(w.attributes[attribute], w.plain(live)).(T) // as the schema has it
	return value
}

// plain is a value of the API as JSON; nil if it is empty.
func (w *flattener) plain(live any) any {
	text, err := json.Marshal(live)
	var plain any
	if err == nil {
		err = plainjson.Unmarshal(text, &plain)
	}
	if err != nil {
		w.diags.AddError("Cannot write JSON", err.Error())
	}
	if items, isList := plain.([]any); isList && len(items) == 0 {
		return nil
	}
	return plain
}

func (w *flattener) value(attribute schema.Attribute, plain any) attr.Value {
	kind := attribute.GetType()
	raw := apifield.Naming(fieldOf).FlattenOne(w.ctx, attribute, plain, tftypes.NewValue(kind.TerraformType(w.ctx), nil))
	value, err := kind.ValueFromTerraform(w.ctx, raw)
	if err != nil {
		w.diags.AddError("Cannot read the cluster's value", err.Error())
	}
	return value
}

// pod is an object of settings of pods, and of its own attributes besides.
func (w *flattener) pod(attribute string, s trainingjob.PodSettings, own map[string]attr.Value) types.Object {
	values, attributes := maps.Clone(own), attributesWithin(w.attributes[attribute])
	if values == nil {
		values = map[string]attr.Value{}
	}
	affinity, overrides := w.json(s.Affinity, s.Affinity == nil), w.json(s.PodOverrides, len(s.PodOverrides) == 0)
	s.Affinity, s.PodOverrides = nil, nil
	fields, _ := w.plain(s).(map[string]any)
	for name := range podFields {
		values[name] = w.value(attributes[name], fields[fieldOf(name)])
	}
	values["affinity"], values["pod_overrides"] = affinity, overrides
	object, diags := types.ObjectValue(attributesOf(w.attributes[attribute].GetType()), values)
	w.diags.Append(diags...)
	return object
}
