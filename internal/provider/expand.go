package provider

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	corev1 "k8s.io/api/core/v1"
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

// namespaceOf is the namespace that an attribute names, or "default".
func namespaceOf(value types.String) string {
	if value.IsNull() || value.IsUnknown() {
		return corev1.NamespaceDefault
	}
	return value.ValueString()
}

func orOne(value types.Int64) int {
	if value.IsNull() || value.IsUnknown() {
		return 1
	}
	return int(value.ValueInt64())
}

// integerOrNil is nil for null and unknown.
func integerOrNil(value types.Int64) *int64 {
	if value.IsUnknown() {
		return nil
	}
	return value.ValueInt64Pointer()
}
