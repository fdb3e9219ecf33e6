package provider

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
)

// priorityClassTimeout bounds every operation; a PriorityClass has no controller that could take longer.
const priorityClassTimeout = 2 * time.Minute

// priorityClass is elastic_priority_class.
type priorityClass struct {
	connection *connection
}

var (
	_ resource.ResourceWithConfigure   = &priorityClass{}
	_ resource.ResourceWithImportState = &priorityClass{}
	_ resource.ResourceWithIdentity    = &priorityClass{}
	_ resource.ResourceWithMoveState   = &priorityClass{}
)

func newPriorityClass() resource.Resource { return &priorityClass{} }

func (r *priorityClass) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_priority_class"
}

func (r *priorityClass) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = priorityClassSchema()
}

func (r *priorityClass) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityschema.Schema{Attributes: map[string]identityschema.Attribute{
		"name": identityschema.StringAttribute{
			Description:       "Name of the PriorityClass.",
			RequiredForImport: true,
		},
	}}
}

func (r *priorityClass) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.connection = connectionOf(req.ProviderData, &resp.Diagnostics)
}

func (r *priorityClass) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	ctx, cancel := context.WithTimeout(ctx, priorityClassTimeout)
	defer cancel()
	var model priorityClassModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &model)...)
	desired, diags := model.object(ctx)
	resp.Diagnostics.Append(diags...)
	client, diags := r.connection.cluster()
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	created, err := cluster.Create(ctx, client, client.Kubernetes().SchedulingV1().PriorityClasses(), desired)
	if err != nil {
		model.subject().explain(&resp.Diagnostics, err)
		return
	}
	model.UID = types.StringValue(string(created.UID))
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, model.identity())...)
}

func (r *priorityClass) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	ctx, cancel := context.WithTimeout(ctx, priorityClassTimeout)
	defer cancel()
	var model priorityClassModel
	resp.Diagnostics.Append(req.State.Get(ctx, &model)...)
	client, diags := r.connection.cluster()
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	// Also for a class that is gone: Terraform before 1.12 keeps no identity, and the framework asks for one.
	resp.Diagnostics.Append(resp.Identity.Set(ctx, model.identity())...)
	live, err := cluster.Get(ctx, client, client.Kubernetes().SchedulingV1().PriorityClasses(), model.Name.ValueString())
	if apierrors.IsNotFound(err) {
		resp.State.RemoveResource(ctx)
		return
	}
	if err != nil {
		model.subject().explain(&resp.Diagnostics, err)
		return
	}
	if before := model.UID.ValueString(); before != "" && before != string(live.UID) {
		resp.Diagnostics.AddWarning(fmt.Sprintf("PriorityClass %s was made anew outside of Terraform", live.Name),
			fmt.Sprintf("Its UID was %s and is %s. It is managed as it is now; pods that were made before keep their priority.", before, live.UID))
	}
	resp.Diagnostics.Append(model.read(client, live)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}

func (r *priorityClass) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	ctx, cancel := context.WithTimeout(ctx, priorityClassTimeout)
	defer cancel()
	var model, prior priorityClassModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &model)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &prior)...)
	desired, diags := model.object(ctx)
	resp.Diagnostics.Append(diags...)
	client, diags := r.connection.cluster()
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	applied, err := cluster.Apply(ctx, client, client.Kubernetes().SchedulingV1().PriorityClasses(), desired, cluster.ApplyOptions{
		UID: apitypes.UID(prior.UID.ValueString()), Complete: true,
	})
	if err != nil {
		model.subject().explain(&resp.Diagnostics, err)
		return
	}
	model.UID = types.StringValue(string(applied.UID))
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, model.identity())...)
}

func (r *priorityClass) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	ctx, cancel := context.WithTimeout(ctx, priorityClassTimeout)
	defer cancel()
	var model priorityClassModel
	resp.Diagnostics.Append(req.State.Get(ctx, &model)...)
	client, diags := r.connection.cluster()
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	err := cluster.Delete(ctx, client, client.Kubernetes().SchedulingV1().PriorityClasses(),
		model.Name.ValueString(), apitypes.UID(model.UID.ValueString()), metav1.DeletePropagationBackground)
	model.subject().explain(&resp.Diagnostics, err)
}

// ImportState takes the name, or on Terraform 1.12 and later the identity.
func (r *priorityClass) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	resource.ImportStatePassthroughWithIdentity(ctx, path.Root("name"), path.Root("name"), req, resp)
}

// priorityClassIdentity is the value of the resource's identity.
type priorityClassIdentity struct {
	Name types.String `tfsdk:"name"`
}
