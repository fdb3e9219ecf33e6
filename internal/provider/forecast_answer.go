package provider

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
)

// forecastAnswerModel is an answer as data.
type forecastAnswerModel struct {
	AsOf          types.String `tfsdk:"as_of"`
	Outcome       types.String `tfsdk:"outcome"`
	Fits          types.Bool   `tfsdk:"fits"`
	Summary       types.String `tfsdk:"summary"`
	Text          types.String `tfsdk:"text"`
	QueuePosition types.Int64  `tfsdk:"queue_position"`
	ExpectedAt    types.String `tfsdk:"expected_at"`
	Earliest      types.String `tfsdk:"expected_earliest"`
	Latest        types.String `tfsdk:"expected_latest"`
	Assumed       types.List   `tfsdk:"assumed_jobs"`
	Reasons       types.List   `tfsdk:"reasons"`
	Approximate   types.List   `tfsdk:"approximate"`
	Codes         types.List   `tfsdk:"approximate_codes"`
	Starts        types.List   `tfsdk:"starts"`
	Victims       types.List   `tfsdk:"victims"`
	Claims        types.Object `tfsdk:"claims"`
}

// claimsModel is how certain the claims of an answer are.
type claimsModel struct {
	Outcome   certaintyModel  `tfsdk:"outcome"`
	Evictions evictedModel    `tfsdk:"evictions"`
	Placement certaintyModel  `tfsdk:"placement"`
	Start     certaintyModel  `tfsdk:"start"`
	Queue     *certaintyModel `tfsdk:"queue"`
}

type certaintyModel struct {
	Certain types.Bool `tfsdk:"certain"`
	Reasons []string   `tfsdk:"reasons"`
}

type evictedModel struct {
	certaintyModel
	Min             types.Int64  `tfsdk:"min_pods"`
	Max             types.Int64  `tfsdk:"max_pods"`
	HighestPriority types.Int64  `tfsdk:"highest_priority"`
	Choice          *choiceModel `tfsdk:"choice"`
}

type choiceModel struct {
	Min types.Int64 `tfsdk:"min"`
	Max types.Int64 `tfsdk:"max"`
	Of  []string    `tfsdk:"of"`
}

type startModel struct {
	Pod          types.String `tfsdk:"pod"`
	State        types.String `tfsdk:"state"`
	Nodes        []string     `tfsdk:"nodes"`
	After        []string     `tfsdk:"after"`
	GraceSeconds types.Int64  `tfsdk:"grace_seconds"`
	Why          types.String `tfsdk:"reason"`
}

type victimModel struct {
	Kind      types.String `tfsdk:"kind"`
	Namespace types.String `tfsdk:"namespace"`
	Name      types.String `tfsdk:"name"`
	Node      types.String `tfsdk:"node"`
	Priority  types.Int64  `tfsdk:"priority"`
	Job       types.String `tfsdk:"job"`
	JobKind   types.String `tfsdk:"job_kind"`
	Outcome   types.String `tfsdk:"outcome"`
	Certain   types.Bool   `tfsdk:"certain"`
}

var (
	textList  = types.ListType{ElemType: types.StringType}
	startType = types.ObjectType{AttrTypes: map[string]attr.Type{
		"pod": types.StringType, "state": types.StringType, "nodes": textList, "after": textList, "grace_seconds": types.Int64Type, "reason": types.StringType,
	}}
	victimType = types.ObjectType{AttrTypes: map[string]attr.Type{
		"kind": types.StringType, "namespace": types.StringType, "name": types.StringType, "node": types.StringType, "priority": types.Int64Type,
		"job": types.StringType, "job_kind": types.StringType, "outcome": types.StringType, "certain": types.BoolType,
	}}
	certaintyType = types.ObjectType{AttrTypes: map[string]attr.Type{"certain": types.BoolType, "reasons": textList}}
	claimTypes    = map[string]attr.Type{
		"outcome": certaintyType, "placement": certaintyType, "start": certaintyType, "queue": certaintyType,
		"evictions": types.ObjectType{AttrTypes: map[string]attr.Type{
			"certain": types.BoolType, "reasons": textList, "min_pods": types.Int64Type, "max_pods": types.Int64Type, "highest_priority": types.Int64Type,
			"choice": types.ObjectType{AttrTypes: map[string]attr.Type{"min": types.Int64Type, "max": types.Int64Type, "of": textList}},
		}},
	}
)

// noForecastAnswer is null everywhere: an empty list of victims would mean that the job evicts nothing.
func noForecastAnswer() forecastAnswerModel {
	none := types.ListNull(types.StringType)
	return forecastAnswerModel{
		Assumed: none, Reasons: none, Approximate: none, Codes: none, Starts: types.ListNull(startType),
		Victims: types.ListNull(victimType), Claims: types.ObjectNull(claimTypes),
	}
}

func forecastAnswerOf(ctx context.Context, a forecast.Answer) (forecastAnswerModel, diag.Diagnostics) {
	var diags diag.Diagnostics
	list := func(kind attr.Type, values any) types.List {
		value, more := types.ListValueFrom(ctx, kind, values)
		diags.Append(more...)
		return value
	}
	starts, victims := []startModel{}, []victimModel{}
	for _, p := range a.Pods {
		starts = append(starts, startModel{
			Pod: types.StringValue(p.Role), State: types.StringValue(string(p.State)), Nodes: notNil(p.Nodes), After: notNil(p.After),
			GraceSeconds: types.Int64Value(int64(p.Grace.Seconds())), Why: textOrNull(p.Why),
		})
	}
	for _, e := range a.Evicts {
		kind := "Pod"
		if e.Workload {
			kind = "Workload"
		}
		victims = append(victims, victimModel{
			Kind: types.StringValue(kind), Namespace: types.StringValue(e.Namespace), Name: types.StringValue(e.Name), Node: textOrNull(e.Node),
			Priority: types.Int64Value(int64(e.Priority)), Job: textOrNull(e.OwnerName), JobKind: textOrNull(e.OwnerKind),
			Outcome: types.StringValue(e.Outcome), Certain: types.BoolValue(e.Certain),
		})
	}
	model := forecastAnswerModel{
		AsOf: types.StringValue(a.AsOf.UTC().Format(time.RFC3339)), Outcome: types.StringValue(string(a.Outcome)), Fits: types.BoolValue(a.Outcome == forecast.Fits),
		Summary: types.StringValue(a.Summary()), Text: types.StringValue(a.Text()), QueuePosition: types.Int64Null(),
		Assumed: list(types.StringType, notNil(a.Assumed)), Reasons: list(types.StringType, notNil(a.Reasons())), Approximate: list(types.StringType, forecast.Texts(a.Approximate)),
		Codes:  list(types.StringType, codeTexts(a.Codes())),
		Starts: list(startType, starts), Victims: list(victimType, victims),
	}
	claims, more := types.ObjectValueFrom(ctx, claimTypes, claimsOf(a))
	diags.Append(more...)
	model.Claims = claims
	if ahead, waits := a.Ahead(); waits {
		model.QueuePosition = types.Int64Value(int64(ahead))
	}
	if e := a.Estimate; e != nil {
		at := func(t time.Time) types.String { return types.StringValue(t.UTC().Format(time.RFC3339)) }
		model.ExpectedAt, model.Earliest, model.Latest = at(e.At), at(e.Earliest), at(e.Latest)
	}
	return model, diags
}

func codeTexts(codes []forecast.ReasonCode) []string {
	texts := make([]string, 0, len(codes))
	for _, code := range codes {
		texts = append(texts, string(code))
	}
	return texts
}

func claimsOf(a forecast.Answer) claimsModel {
	claims := a.Claims()
	certainty := func(of forecast.Certainty) certaintyModel {
		return certaintyModel{types.BoolValue(of.Certain), codeTexts(of.Reasons)}
	}
	integer := func(n int) types.Int64 { return types.Int64Value(int64(n)) }
	e := claims.Evictions
	m := claimsModel{
		Outcome: certainty(claims.Outcome), Placement: certainty(claims.Placement), Start: certainty(claims.Start),
		Evictions: evictedModel{certaintyModel: certainty(e.Certainty), Min: integer(e.Pods.Min), Max: integer(e.Pods.Max)},
	}
	if e.HighestPriority != nil {
		m.Evictions.HighestPriority = integer(int(*e.HighestPriority))
	}
	if e.Choice != nil {
		m.Evictions.Choice = &choiceModel{integer(e.Choice.Choose.Min), integer(e.Choice.Choose.Max), e.Choice.Of}
	}
	if claims.Queue != nil {
		of := certainty(*claims.Queue)
		m.Queue = &of
	}
	return m
}

// notNil is an empty list where there is none: it was looked for, and there is nothing.
func notNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// textsOf are the texts of a list that is known; none where there is no list.
func textsOf(list types.List) []string {
	var texts []string
	for _, element := range list.Elements() {
		if text, ok := element.(types.String); ok {
			texts = append(texts, text.ValueString())
		}
	}
	return texts
}
