package provider

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/validation"
	"github.com/elastic-training/terraform-provider-elastic/internal/provider/apifield"
)

// desired is the object that a plan describes, all of whose values are known now. Rules that had to wait for some of
// them are checked here.
func (o *object[T]) desired(ctx context.Context, plan values, diags *diag.Diagnostics) T {
	desired, err := o.expand(plan)
	if err != nil {
		diags.AddError(fmt.Sprintf("Not a %s", o.title), err.Error()+".")
		return desired
	}
	for _, problem := range o.creationProblems(desired) {
		diags.Append(o.refusal(ctx, problem))
	}
	return desired
}

// refusals are the rules of the API and of Kueue's webhooks that a configuration breaks. A rule that looks at a value
// which is not known yet is left to the next time: Terraform validates again when it plans, and desired does once more.
func (o *object[T]) refusals(ctx context.Context, config tftypes.Value) diag.Diagnostics {
	var diags diag.Diagnostics
	v := valuesOf(config)
	// Through the API's JSON and back, so that omitted attributes have their defaults.
	given, _ := apifield.Expand(config).(map[string]any)
	maps.Copy(v, apifield.Flatten(ctx, o.laidOut(ctx).fields, given, v))
	object, err := o.expand(v)
	if err != nil {
		return diags // a value of another kind than the field's, which the schema refuses
	}
	for _, problem := range o.creationProblems(object) {
		if at, ok := o.attributeOf(ctx, problem.Field); ok && !o.isDecided(config, at) {
			continue
		}
		diags.Append(o.refusal(ctx, problem))
	}
	return diags
}

// creationProblems are the rules that an object breaks. Those about metadata are the schema's to check.
func (k *kind[T]) creationProblems(object T) field.ErrorList {
	if k.problems == nil {
		return nil
	}
	return slices.DeleteFunc(k.problems(object), func(problem *field.Error) bool { return strings.HasPrefix(problem.Field, "metadata") })
}

// attributeOf is the attribute that the path of a field means.
func (k *kind[T]) attributeOf(ctx context.Context, fieldPath string) (path.Path, bool) {
	return k.subject(ctx, nil).attributeOf("." + fieldPath)
}

// refusal is a broken rule as a diagnostic at the attribute, in the attributes' words.
func (k *kind[T]) refusal(ctx context.Context, problem *field.Error) diag.Diagnostic {
	summary := fmt.Sprintf("Kueue would reject this %s", k.title)
	if problem.Origin == validation.Ours {
		summary = fmt.Sprintf("This %s would not work", k.title)
	}
	detail := apifield.InAttributes(k.laidOut(ctx).fields, strings.TrimSuffix(problem.ErrorBody(), "."))
	at, ok := k.attributeOf(ctx, problem.Field)
	if !ok {
		return diag.NewErrorDiagnostic(summary, problem.Field+": "+detail+".")
	}
	return diag.NewAttributeErrorDiagnostic(at, summary, fmt.Sprintf("%s: %s.", at, detail))
}

// isDecided reports whether all inputs of a rule about an attribute are known: the attribute, its neighbours in the
// same object or list, and the other attributes that the kind names for it.
func (k *kind[T]) isDecided(config tftypes.Value, at path.Path) bool {
	around := at
	if parent := at.ParentPath(); len(parent.Steps()) > 0 {
		around = parent
	}
	regions := []string{around.String()}
	if k.concerns != nil {
		regions = append(regions, k.concerns(at.String())...)
	}
	return !slices.ContainsFunc(regions, func(region string) bool {
		region, _, _ = strings.Cut(region, `["`) // a map counts as a whole
		return !isKnown(config, region)
	})
}

// replacing are the attributes whose change the API refuses though an object could be created with the new value: the
// object is replaced. An unknown value counts as a change.
func (k *kind[T]) replacing(ctx context.Context, state, plan tftypes.Value) path.Paths {
	if state.IsNull() || k.changes == nil {
		return nil
	}
	plan, err := tftypes.Transform(plan, func(_ *tftypes.AttributePath, value tftypes.Value) (tftypes.Value, error) {
		switch {
		case value.IsKnown():
			return value, nil
		case value.Type().Is(tftypes.String):
			return tftypes.NewValue(tftypes.String, someText), nil
		default:
			return tftypes.NewValue(value.Type(), nil), nil
		}
	})
	if err != nil {
		return nil
	}
	live, errLive := k.expand(valuesOf(state))
	desired, errDesired := k.expand(valuesOf(plan))
	if errLive != nil || errDesired != nil {
		return nil
	}
	alsoOfCreation := k.creationProblems(desired)
	var paths path.Paths
	for _, problem := range k.changes(desired, live) {
		isOfCreation := slices.ContainsFunc(alsoOfCreation, func(p *field.Error) bool { return p.Error() == problem.Error() })
		if at, ok := k.attributeOf(ctx, problem.Field); ok && !isOfCreation {
			if root, ok := at.Steps()[0].(path.PathStepAttributeName); ok {
				paths.Append(path.Root(string(root)))
			}
		}
	}
	return paths
}

// someText replaces a text that is not known yet, if it matters only that it may differ. It is a name and a quantity,
// though an unlikely name.
const someText = "0"

// check is something about one field of a planned object that depends on other objects.
type check struct {
	field string // "resourceGroups[0].flavors[1].name"
	about func(at path.Path) diag.Diagnostics
}

// compare notes the object for others' plans, and compares it with those it refers to when the plan makes or changes
// it.
func (o *object[T]) compare(ctx context.Context, state, plan tftypes.Value) diag.Diagnostics {
	var diags diag.Diagnostics
	v := valuesOf(plan)
	desired, err := o.expand(v)
	if err != nil {
		return diags
	}
	if o.plannedAttributes != nil && v.text("name") != "" {
		name := reference{refKind(o.title), v.text("namespace"), v.text("name")}
		o.connection.addPlanned(name, o.plannedAttributes(desired))
		o.connection.plansObject(name, desired)
	}
	if o.checks == nil || plan.Equal(state) {
		return diags
	}
	for _, c := range o.checks(ctx, o.connection, desired) {
		if at, ok := o.attributeOf(ctx, c.field); ok && isKnown(plan, at.String()) {
			diags.Append(c.about(at)...)
		}
	}
	return diags
}
