package provider

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
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

// The attributes of jobs and tasks, and what is nested in them, have their own names in the definition, too: a new one is
// an attribute in the schema and a field with its name in package trainingjob or task, and nothing here. In lists of
// Kubernetes' own objects, such as tolerations, the definition has the API's names. jobFields and taskField have what is
// not of that form.

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

// namesIn are the fields of a struct by the names that their tags give them.
func namesIn(of reflect.Type, tag string) map[string][]int {
	names := map[string][]int{}
	for _, field := range reflect.VisibleFields(of) {
		if name, _, _ := strings.Cut(field.Tag.Get(tag), ","); name != "" && name != "-" {
			names[name] = field.Index
		}
	}
	return names
}

// fieldsIn are pointers to the fields of a definition, by the attributes that stand for them.
func fieldsIn(definition any) map[string]any {
	fields, value := map[string]any{}, reflect.ValueOf(definition).Elem()
	for name, index := range namesIn(value.Type(), "json") {
		fields[name] = value.FieldByIndex(index).Addr().Interface()
	}
	return fields
}

// field sets the field of a definition that an attribute stands for, unless the attribute is null or unknown. Of the
// types here a definition has another form than the attribute; entries are added to those that a map has already.
func (r *expander) field(at path.Path, value attr.Value, to any) {
	if value == nil || absent(value) {
		return
	}
	switch to := to.(type) {
	case *trainingjob.PodSettings:
		object, _ := value.(types.Object)
		fields := fieldsIn(to)
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			r.field(at.AtName(name), object.Attributes()[name], fields[name])
		}
	case *map[string]string:
		texts, _ := value.(types.Map)
		*to = trainingjob.Merge(*to, r.texts(texts))
	case *json.RawMessage:
		text, _ := value.(types.String)
		*to = trainingjob.CanonicalOverrides(r.json(text))
	case **corev1.Affinity:
		text, _ := value.(types.String)
		r.affinity(at, r.json(text), to)
	case **trainingjob.SecurityContext:
		r.decode(at, value, to)
		*to = canonicalSecurityContext(*to)
	case **trainingjob.Topology:
		if r.decode(at, value, to); *to != nil {
			(*to).SliceSize = max(math.MinInt32, min((*to).SliceSize, math.MaxInt32))
		}
	default:
		r.decode(at, value, to)
	}
}

func (r *expander) affinity(at path.Path, text json.RawMessage, to **corev1.Affinity) {
	if text == nil {
		return
	}
	*to = &corev1.Affinity{}
	if err := trainingjob.StrictDecode(text, *to); err != nil {
		r.diags.AddAttributeError(at, "Invalid affinity",
			fmt.Sprintf("%s is not a Kubernetes Affinity: %s. Its fields are nodeAffinity, podAffinity and podAntiAffinity.", at, err))
	}
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

// field is the value of an attribute for a field of a definition; the inverse of the expander's.
func (w *flattener) field(attribute schema.Attribute, live any) attr.Value {
	switch live := live.(type) {
	case *json.RawMessage:
		return w.json(*live, len(*live) == 0)
	case **corev1.Affinity:
		return w.json(*live, *live == nil)
	default:
		return w.value(attribute, w.plain(live))
	}
}

// plain is a value of the API as JSON; nil if it is empty.
func (w *flattener) plain(live any) any {
	v := reflect.Indirect(reflect.ValueOf(live))
	if !v.IsValid() || v.IsZero() || (v.Kind() == reflect.Map || v.Kind() == reflect.Slice) && v.Len() == 0 {
		return nil
	}
	text, err := json.Marshal(live)
	var plain any
	if err == nil {
		err = plainjson.Unmarshal(text, &plain)
	}
	if err != nil {
		w.diags.AddError("Cannot write JSON", err.Error())
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
	for name, field := range fieldsIn(&s) {
		own[name] = w.field(attributesWithin(w.attributes[attribute])[name], field)
	}
	object, diags := types.ObjectValue(attributesOf(w.attributes[attribute].GetType()), own)
	w.diags.Append(diags...)
	return object
}
