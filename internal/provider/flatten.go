package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	corev1 "k8s.io/api/core/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/provider/quantity"
)

// flattener turns plain values into framework ones; empty values become null.
type flattener struct {
	ctx   context.Context //nolint:containedctx // lives as long as one conversion
	types map[string]attr.Type
	diags diag.Diagnostics
}

// object is the value of the attribute with that name; its type is the schema's.
func (w *flattener) object(attribute string, value any) types.Object {
	return w.objectOf(attributesOf(w.types[attribute]), value)
}

func (w *flattener) objectOf(attributes map[string]attr.Type, value any) types.Object {
	object, diags := types.ObjectValueFrom(w.ctx, attributes, value)
	w.diags.Append(diags...)
	return object
}

func attributesOf(t attr.Type) map[string]attr.Type {
	if list, ok := t.(attr.TypeWithElementType); ok {
		t = list.ElementType()
	}
	object, ok := t.(attr.TypeWithAttributeTypes)
	if !ok {
		return nil
	}
	return object.AttributeTypes()
}

func (w *flattener) list(element attr.Type, values any, length int) types.List {
	if length == 0 {
		return types.ListNull(element)
	}
	list, diags := types.ListValueFrom(w.ctx, element, values)
	w.diags.Append(diags...)
	return list
}

func (w *flattener) mapOf(element attr.Type, values any, length int) types.Map {
	if length == 0 {
		return types.MapNull(element)
	}
	value, diags := types.MapValueFrom(w.ctx, element, values)
	w.diags.Append(diags...)
	return value
}

func (w *flattener) texts(values map[string]string) types.Map {
	return w.mapOf(types.StringType, values, len(values))
}

func (w *flattener) lists(values map[string][]string) types.Map {
	return w.mapOf(types.ListType{ElemType: types.StringType}, values, len(values))
}

func (w *flattener) tolerations(list attr.Type, tolerations []corev1.Toleration) types.List {
	var models []tolerationModel
	for _, t := range tolerations {
		models = append(models, tolerationModel{
			Key: textOrNull(t.Key), Operator: textOrNull(string(t.Operator)), Value: textOrNull(t.Value),
			Effect: textOrNull(string(t.Effect)), TolerationSeconds: types.Int64PointerValue(t.TolerationSeconds),
		})
	}
	return w.list(types.ObjectType{AttrTypes: attributesOf(list)}, models, len(models))
}

func (w *flattener) amounts(list corev1.ResourceList) types.Map {
	values := make(map[string]quantity.Value, len(list))
	for name, amount := range list {
		values[string(name)] = quantity.New(amount.String())
	}
	return w.mapOf(quantity.Type{}, values, len(list))
}

func (w *flattener) json(value any, absent bool) types.String {
	if absent {
		return types.StringNull()
	}
	text, err := canonicalJSON(value)
	if err != nil {
		w.diags.AddError("Cannot write JSON", err.Error())
	}
	return types.StringValue(string(text))
}

func (w *flattener) volume(attributes map[string]attr.Type, v trainingjob.Volume) volumeModel {
	m := volumeModel{
		Name: types.StringValue(v.Name), MountPath: types.StringValue(v.MountPath), PVC: textOrNull(v.PVC),
		HostPath: textOrNull(v.HostPath), ConfigMap: textOrNull(v.ConfigMap),
		EmptyDir: types.ObjectNull(attributesOf(attributes["empty_dir"])), ReadOnly: types.BoolPointerValue(v.ReadOnly),
	}
	if v.EmptyDir != nil {
		dir := emptyDirModel{Medium: textOrNull(string(v.EmptyDir.Medium)), SizeLimit: quantity.Null()}
		if v.EmptyDir.SizeLimit != nil {
			dir.SizeLimit = quantity.New(v.EmptyDir.SizeLimit.String())
		}
		m.EmptyDir = w.objectOf(attributesOf(attributes["empty_dir"]), dir)
	}
	return m
}

func textOrNull(text string) types.String {
	if text == "" {
		return types.StringNull()
	}
	return types.StringValue(text)
}
