package provider

import (
	"context"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
)

// jobResource is the part that elastic_training_job and elastic_task share.
type jobResource struct {
	name       string // the type's, without the provider's: "training_job"
	example    string // of an import ID
	schema     func(ctx context.Context) schema.Schema
	connection *connection
}

// word is the resource in a sentence: "training job".
func (r *jobResource) word() string { return strings.ReplaceAll(r.name, "_", " ") }

func (r *jobResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_" + r.name
}

func (r *jobResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = r.schema(ctx)
}

func (r *jobResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identitySchema(r.word(), true)
}

func (r *jobResource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.connection = connectionOf(req.ProviderData, &resp.Diagnostics)
}

// ImportState takes namespace/name, or on Terraform 1.12 and later the identity.
func (r *jobResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	importNamespaced(ctx, r.word(), r.example, req, resp)
}

// timeoutOf is one of the methods of timeouts.Value.
type timeoutOf func(ctx context.Context, otherwise time.Duration) (time.Duration, diag.Diagnostics)

// begin is the client of an operation, and a context that ends with the operation's timeout; the client is nil after an
// error, of this or of an earlier step.
func (r *jobResource) begin(ctx context.Context, diags *diag.Diagnostics, of timeoutOf) (*cluster.Client, context.Context, context.CancelFunc) {
	timeout, more := of(ctx, jobTimeout)
	diags.Append(more...)
	client, more := r.connection.cluster()
	diags.Append(more...)
	if diags.HasError() {
		return nil, ctx, func() {}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errTimeIsUp)
	return client, ctx, cancel
}

// loader reads its value from a state.
type loader interface {
	load(ctx context.Context, raw tftypes.Value) diag.Diagnostics
}

// delete reads the state into a model, of which shared is a part, and lets remove delete the job's objects.
func (r *jobResource) delete(
	ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse, model loader, shared *jobModel,
	remove func(ctx context.Context, client *cluster.Client) diag.Diagnostics,
) {
	r.connection.applies()
	ctx, addWarnings := collectWarnings(ctx, &resp.Diagnostics)
	defer addWarnings()
	resp.Diagnostics.Append(model.load(ctx, req.State.Raw)...)
	client, ctx, cancel := r.begin(ctx, &resp.Diagnostics, shared.Timeouts.Delete)
	defer cancel()
	if client != nil {
		resp.Diagnostics.Append(remove(ctx, client)...)
	}
}

// appendProblems adds an error, at the attribute of its field, for every problem that is included.
func appendProblems(
	diags *diag.Diagnostics, title string, problems []trainingjob.Problem, at func(field string) path.Path,
	included func(trainingjob.Problem) bool,
) {
	for _, p := range problems {
		if included(p) {
			diags.AddAttributeError(at(p.Field), title, p.String()+".")
		}
	}
}

// appendSuspicions adds a warning for every suspicion that is included, unless there are errors.
func appendSuspicions(diags *diag.Diagnostics, suspicions []trainingjob.Problem, at func(field string) path.Path, included func(trainingjob.Problem) bool) {
	for _, p := range suspicions {
		if included(p) && !diags.HasError() {
			diags.AddAttributeWarning(at(p.Field), "Possible mistake in "+p.Field, p.String()+".")
		}
	}
}

// isDecided reports whether every attribute is known that decides about a problem at a field. If only generate_name is set,
// the name is an example, and a problem with it is not the user's.
func isDecided(config tftypes.Value, field string, isExample bool) bool {
	if strings.HasPrefix(field, "topology") && !topologyIsKnown(config) {
		return false
	}
	return isKnown(config, field) && (!isExample || field != "name")
}

func anyProblem(trainingjob.Problem) bool { return true }
