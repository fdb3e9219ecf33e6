package provider

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/provider/drift"
)

// isOfCluster reports whether an attribute is something that the cluster holds and the configuration sets.
func isOfCluster(attribute string) bool {
	return isField(attribute) || attribute == "labels" || attribute == "annotations" || attribute == "generate_name"
}

// observation is the information about a live object that is not in the state.
func (k *kind[T]) observation(ctx context.Context, client *cluster.Client, state values, live T) (drift.Observation, error) {
	about := k.subject(ctx, nil)
	o, err := observationOf(client, live, state, func(field string) []path.Path {
		if attribute, ok := about.attributeOf(field); ok {
			return []path.Path{attribute}
		}
		return nil
	})
	if k.stops && err == nil {
		o.Held, err = heldBy(client, live)
	}
	return o, err
}

// observe keeps what a refresh observed, for the plan that follows it. before is the state that was refreshed.
func (o *object[T]) observe(ctx context.Context, client *cluster.Client, private privateData, before, state values, live T) diag.Diagnostics {
	observed, err := o.observation(ctx, client, state, live)
	if err != nil {
		return diag.Diagnostics{cannotTellWriters(err)}
	}
	var changes []drift.Change
	if before.text("uid") == state.text("uid") { // not of an import
		changes = drift.Changes(before, state, isOfCluster)
	}
	return keepObservation(ctx, private, observed.Observed(changes, observationIn(ctx, private)))
}

// warnOfDrift names the planned changes that set back what others have written.
func (o *object[T]) warnOfDrift(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	state, plan, consequence := valuesOf(req.State.Raw), valuesOf(resp.Plan.Raw), o.consequence
	if consequence == nil {
		consequence = func(drift.Change) string { return "" }
	}
	warnOfDrift(&resp.Diagnostics, o.title+" "+o.importID(state), drift.Changes(state, plan, isOfCluster),
		observationIn(ctx, req.Private), valuesOf(req.Config.Raw), consequence)
}

// checkSincePlan refuses an update that would overwrite what others have changed since its plan was made.
func (o *object[T]) checkSincePlan(ctx context.Context, client *cluster.Client, private privateData, state, plan, config values, live T) error {
	if client.ForcesConflicts() {
		return nil
	}
	read := func(from values) values {
		v := maps.Clone(from)
		o.read(ctx, client, v, live) // the refresh has reported what it cannot read
		return v
	}
	now, err := o.observation(ctx, client, state, live)
	if err != nil {
		return err
	}
	found := drift.Conflicts(drift.Comparison{
		Planned: state, Desired: plan, Live: read(state), LiveAsDesired: read(plan), Config: config,
		Before: observationIn(ctx, private), Now: now, Compared: isOfCluster,
	})
	if len(found) == 0 {
		return nil
	}
	return &drift.ConflictError{Ref: cluster.Ref{Kind: o.title, Namespace: state.text("namespace"), Name: state.text("name")}, Conflicts: found}
}
