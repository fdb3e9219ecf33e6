package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	corev1 "k8s.io/api/core/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/provider/quantity"
)

// expander turns framework values into plain ones and collects diagnostics.
type expander struct {
	ctx   context.Context //nolint:containedctx // lives as long as one conversion
	diags diag.Diagnostics
}

// into is an object's attributes; those of a null or unknown object are null.
func into[T any](r *expander, object types.Object) T {
	var value T
	if !object.IsNull() && !object.IsUnknown() {
		r.diags.Append(object.As(r.ctx, &value, basetypes.ObjectAsOptions{})...)
	}
	return value
}

// elements are a list's; those of a null or unknown list are none.
func elements[T any](r *expander, list types.List) []T {
	var values []T
	if !list.IsNull() && !list.IsUnknown() {
		r.diags.Append(list.ElementsAs(r.ctx, &values, false)...)
	}
	return values
}

func (r *expander) texts(value types.Map) map[string]string {
	texts, diags := stringMap(r.ctx, value)
	r.diags.Append(diags...)
	return texts
}

// words are a list's texts.
func (r *expander) words(list types.List) []string {
	var words []string
	for _, text := range elements[types.String](r, list) {
		words = append(words, text.ValueString())
	}
	return words
}

// lists are a map's lists of texts; those of a null or unknown map are none.
func (r *expander) lists(value types.Map) map[string][]string {
	if value.IsNull() || value.IsUnknown() {
		return nil
	}
	var lists map[string]types.List
	r.diags.Append(value.ElementsAs(r.ctx, &lists, false)...)
	texts := make(map[string][]string, len(lists))
	for key, list := range lists {
		texts[key] = append([]string{}, r.words(list)...)
	}
	return texts
}

func (r *expander) tolerations(list types.List) []corev1.Toleration {
	var tolerations []corev1.Toleration
	for _, t := range elements[tolerationModel](r, list) {
		toleration := corev1.Toleration{
			Key: t.Key.ValueString(), Operator: corev1.TolerationOperator(t.Operator.ValueString()), Value: t.Value.ValueString(),
			Effect: corev1.TaintEffect(t.Effect.ValueString()),
		}
		if !t.TolerationSeconds.IsUnknown() {
			toleration.TolerationSeconds = t.TolerationSeconds.ValueInt64Pointer()
		}
		tolerations = append(tolerations, toleration)
	}
	return tolerations
}

// json is a text in one spelling for all that mean the same; nil for null and for text that is no JSON, which
// jsonSyntax refuses.
func (r *expander) json(value types.String) json.RawMessage {
	if value.IsNull() || value.IsUnknown() {
		return nil
	}
	text, err := canonicalJSON(json.RawMessage(value.ValueString()))
	if err != nil {
		return nil
	}
	return text
}

// canonicalJSON is one spelling for all that mean the same: keys in order, no blanks.
func canonicalJSON(value any) (json.RawMessage, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var plain any
	if err := decoder.Decode(&plain); err != nil {
		return nil, err
	}
	return json.Marshal(plain)
}

func (r *expander) resources(at path.Path, object types.Object) *corev1.ResourceRequirements {
	if object.IsNull() || object.IsUnknown() {
		return nil
	}
	m := into[resourcesModel](r, object)
	at = at.AtName("resources")
	return &corev1.ResourceRequirements{
		Requests: r.amounts(at.AtName("requests"), m.Requests), Limits: r.amounts(at.AtName("limits"), m.Limits),
	}
}

func (r *expander) amounts(at path.Path, value types.Map) corev1.ResourceList {
	if value.IsNull() || value.IsUnknown() {
		return nil
	}
	var values map[string]quantity.Value
	r.diags.Append(value.ElementsAs(r.ctx, &values, false)...)
	list := corev1.ResourceList{}
	for name, v := range values {
		amount, err := v.Quantity()
		if err != nil {
			r.notQuantity(at.AtMapKey(name), err)
			continue
		}
		list[corev1.ResourceName(name)] = amount
	}
	return list
}

// notQuantity uses the text of the quantities' own validation, so that the problem is reported once.
func (r *expander) notQuantity(at path.Path, err error) {
	r.diags.AddAttributeError(at, "Invalid quantity", fmt.Sprintf("%s: %s", at, err))
}

func (r *expander) volume(at path.Path, m volumeModel) trainingjob.Volume {
	v := trainingjob.Volume{
		Name: m.Name.ValueString(), MountPath: m.MountPath.ValueString(),
		PVC: m.PVC.ValueString(), HostPath: m.HostPath.ValueString(), ConfigMap: m.ConfigMap.ValueString(),
	}
	if !m.ReadOnly.IsUnknown() {
		v.ReadOnly = m.ReadOnly.ValueBoolPointer()
	}
	if m.EmptyDir.IsNull() || m.EmptyDir.IsUnknown() {
		return v
	}
	dir := into[emptyDirModel](r, m.EmptyDir)
	v.EmptyDir = &trainingjob.EmptyDir{Medium: corev1.StorageMedium(dir.Medium.ValueString())}
	if !dir.SizeLimit.IsNull() && !dir.SizeLimit.IsUnknown() {
		limit, err := dir.SizeLimit.Quantity()
		if err != nil {
			r.notQuantity(at.AtName("empty_dir").AtName("size_limit"), err)
		}
		v.EmptyDir.SizeLimit = &limit
	}
	return v
}

func orDefault(value types.String, otherwise string) string {
	if value.IsNull() || value.IsUnknown() {
		return otherwise
	}
	return value.ValueString()
}

func orOne(value types.Int64) int {
	if value.IsNull() || value.IsUnknown() {
		return 1
	}
	return int(value.ValueInt64())
}
