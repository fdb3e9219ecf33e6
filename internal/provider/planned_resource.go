package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
)

// PlannedResource is the content of a resource of a plan: a job, or an object of Kueue or Kubernetes that affects pods.
// Both are nil for a resource without either.
type PlannedResource struct {
	Job    *forecast.Job
	Object runtime.Object
}

// plannedReader is a resource that can be read from a plan outside of the provider.
type plannedReader interface {
	readPlanned(ctx context.Context, raw tftypes.Value, flavors func(namespace, queue string) []map[string]string) (PlannedResource, diag.Diagnostics)
}

// ReadPlanned reads a resource from its attributes in the output of terraform show -json. flavors are the node labels
// among which a queue chooses. An unknown resource type is an error.
func ReadPlanned(
	ctx context.Context, version, resourceType string, attributes []byte,
	flavors func(namespace, queue string) []map[string]string,
) (PlannedResource, error) {
	for _, create := range (&elastic{version: version}).Resources(ctx) {
		of := create()
		var metadata resource.MetadataResponse
		of.Metadata(ctx, resource.MetadataRequest{ProviderTypeName: TypeName}, &metadata)
		reader, reads := of.(plannedReader)
		if metadata.TypeName != resourceType || !reads {
			continue
		}
		var schema resource.SchemaResponse
		of.Schema(ctx, resource.SchemaRequest{}, &schema)
		kind := schema.Schema.Type().TerraformType(ctx)
		text, err := withTypes(attributes, kind)
		if err != nil {
			return PlannedResource{}, err
		}
		raw, err := tftypes.ValueFromJSONWithOpts(text, kind, tftypes.ValueFromJSONOpts{IgnoreUndefinedAttributes: true})
		if err != nil {
			return PlannedResource{}, fmt.Errorf("created by another version of the provider: %w", err)
		}
		read, diags := reader.readPlanned(ctx, raw, flavors)
		if diags.HasError() {
			first := diags.Errors()[0]
			return PlannedResource{}, errors.New(first.Summary() + ": " + first.Detail())
		}
		return read, nil
	}
	return PlannedResource{}, fmt.Errorf("this version of the provider has no resource %s", resourceType)
}

// withTypes adds the types of dynamic attributes, which the JSON of a plan omits.
func withTypes(attributes []byte, kind tftypes.Type) ([]byte, error) {
	object, isObject := kind.(tftypes.Object)
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(attributes, &fields); err != nil || !isObject {
		return attributes, err
	}
	for name, of := range object.AttributeTypes {
		value, given := fields[name]
		if !given || !of.Is(tftypes.DynamicPseudoType) || string(value) == "null" {
			continue
		}
		var plain any
		if err := json.Unmarshal(value, &plain); err != nil {
			return nil, err
		}
		typed, err := json.Marshal(map[string]any{"type": typeOf(plain), "value": plain})
		if err != nil {
			return nil, err
		}
		fields[name] = typed
	}
	return json.Marshal(fields)
}

// typeOf is a JSON value's type as Terraform writes it.
func typeOf(value any) any {
	switch v := value.(type) {
	case bool:
		return "bool"
	case float64:
		return "number"
	case []any:
		types := []any{}
		for _, item := range v {
			types = append(types, typeOf(item))
		}
		return []any{"tuple", types}
	case map[string]any:
		types := map[string]any{}
		for key, item := range v {
			types[key] = typeOf(item)
		}
		return []any{"object", types}
	default:
		return "string"
	}
}

func (o *object[T]) readPlanned(_ context.Context, raw tftypes.Value, _ func(string, string) []map[string]string) (PlannedResource, diag.Diagnostics) {
	object, err := o.expand(valuesOf(raw))
	if err != nil {
		return PlannedResource{}, diag.Diagnostics{diag.NewErrorDiagnostic("Not a "+o.title, err.Error())}
	}
	read, _ := any(object).(runtime.Object)
	return PlannedResource{Object: read}, nil
}

func (r *trainingJob) readPlanned(ctx context.Context, raw tftypes.Value, _ func(string, string) []map[string]string) (PlannedResource, diag.Diagnostics) {
	var model trainingJobModel
	diags := model.load(ctx, raw)
	if diags.HasError() {
		return PlannedResource{}, diags
	}
	d, problems := model.definition(ctx)
	if diags.Append(problems...); diags.HasError() {
		return PlannedResource{}, diags
	}
	job, err := forecast.OfTrainingJob(d)
	if err != nil {
		diags.AddError(invalidTrainingJob, err.Error())
	}
	return PlannedResource{Job: &job}, diags
}

func (r *taskResource) readPlanned(
	ctx context.Context, raw tftypes.Value, flavors func(string, string) []map[string]string,
) (PlannedResource, diag.Diagnostics) {
	var model taskModel
	diags := model.load(ctx, raw)
	if diags.HasError() {
		return PlannedResource{}, diags
	}
	a, problems := model.spec(ctx)
	if diags.Append(problems...); diags.HasError() {
		return PlannedResource{}, diags
	}
	t := a.complete(r.version)
	var labels []map[string]string
	if t.Queue != "" && flavors != nil {
		labels = flavors(t.Namespace, t.Queue)
	}
	job, err := forecast.OfTask(t, labels)
	if err != nil {
		diags.AddError(invalidTask, err.Error())
	}
	return PlannedResource{Job: &job}, diags
}
