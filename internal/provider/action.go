package provider

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/action/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
)

// actionTimeout bounds an action with what it waits for: pods may take their grace to end.
const actionTimeout = 5 * time.Minute

// onNamed is an action on what a name, and where there is one a namespace, names. It is not part of a plan, and leaves
// state alone.
type onNamed struct {
	name        string // without the provider's: "job_suspend"
	description string
	object      string // what is named, for descriptions
	// namespace describes the attribute namespace.
	namespace string
	invoke    func(ctx context.Context, client *cluster.Client, on named, tell func(string)) error

	connection *connection
}

// named is the object of an action.
type named struct{ namespace, name string }

var _ action.ActionWithConfigure = &onNamed{}

// Actions lists the actions, in the order of the documentation.
func (p *elastic) Actions(context.Context) []func() action.Action {
	return []func() action.Action{
		newJobSuspend, newJobResume, newJobCheckpoint,
		newQueueHold, newQueueDrain, newQueueRelease,
	}
}

func (a *onNamed) Metadata(_ context.Context, req action.MetadataRequest, resp *action.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_" + a.name
}

func (a *onNamed) Schema(_ context.Context, _ action.SchemaRequest, resp *action.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: a.description + "\n\nActions need Terraform 1.14.",
		Attributes: map[string]schema.Attribute{
			"name":      schema.StringAttribute{Required: true, MarkdownDescription: "Name of the " + a.object + "."},
			"namespace": schema.StringAttribute{Optional: true, MarkdownDescription: a.namespace},
		},
	}
}

func (a *onNamed) Configure(_ context.Context, req action.ConfigureRequest, resp *action.ConfigureResponse) {
	a.connection = connectionOf(req.ProviderData, &resp.Diagnostics)
}

func (a *onNamed) Invoke(ctx context.Context, req action.InvokeRequest, resp *action.InvokeResponse) {
	var name, namespace types.String
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("name"), &name)...)
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("namespace"), &namespace)...)
	client, diags := a.connection.cluster()
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeoutCause(ctx, actionTimeout, errTimeIsUp)
	defer cancel()
	tell := func(text string) { resp.SendProgress(action.InvokeProgressEvent{Message: text}) }
	err := a.invoke(ctx, client, named{namespace: namespace.ValueString(), name: name.ValueString()}, tell)
	var refused *refusedActionError
	switch {
	case err == nil:
	case errors.As(err, &refused):
		resp.Diagnostics.AddError(refused.summary, refused.detail)
	default:
		explain(&resp.Diagnostics, err)
	}
}

// specOf is the merge patch that sets one field of an object's spec.
func specOf(field string, value any) map[string]any {
	return map[string]any{"spec": map[string]any{field: value}}
}

// refusedActionError is the reason why an action is not possible, and the alternative.
type refusedActionError struct{ summary, detail string }

func (e *refusedActionError) Error() string { return e.summary }

func refuse(summary, detail string, arguments ...any) error {
	return &refusedActionError{summary: summary, detail: fmt.Sprintf(detail, arguments...)}
}
