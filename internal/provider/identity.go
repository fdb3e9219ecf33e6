package provider

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// nameIdentity is the identity of a cluster-scoped object.
type nameIdentity struct {
	Name types.String `tfsdk:"name"`
}

// namespacedIdentity is the identity of an object in a namespace.
type namespacedIdentity struct {
	Namespace types.String `tfsdk:"namespace"`
	Name      types.String `tfsdk:"name"`
}

// identitySchema is the schema of either; what is the word for the object.
func identitySchema(what string, namespaced bool) identityschema.Schema {
	attributes := map[string]identityschema.Attribute{
		"name": identityschema.StringAttribute{Description: "Name of the " + what + ".", RequiredForImport: true},
	}
	if namespaced {
		attributes["namespace"] = identityschema.StringAttribute{Description: "Namespace of the " + what + ".", RequiredForImport: true}
	}
	return identityschema.Schema{Attributes: attributes}
}

func (o *object[T]) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identitySchema(o.title, o.namespaced)
}

// setIdentity writes the identity, which Terraform before 1.12 does not keep.
func (o *object[T]) setIdentity(ctx context.Context, v values, to *tfsdk.ResourceIdentity) diag.Diagnostics {
	if to == nil {
		return nil
	}
	name := types.StringValue(v.text("name"))
	if o.namespaced {
		return to.Set(ctx, namespacedIdentity{Namespace: types.StringValue(v.text("namespace")), Name: name})
	}
	return to.Set(ctx, nameIdentity{Name: name})
}

// importNamed imports what is in no namespace by its name, or by its identity.
func importNamed(ctx context.Context, what, example string, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	identity := nameIdentity{}
	switch {
	case req.ID != "" || req.Identity == nil || req.Identity.Raw.IsNull():
		identity.Name = types.StringValue(req.ID)
	default:
		resp.Diagnostics.Append(req.Identity.Get(ctx, &identity)...)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	if problems := validation.IsDNS1123Subdomain(identity.Name.ValueString()); len(problems) > 0 {
		resp.Diagnostics.AddError("Invalid import ID of "+article(what), fmt.Sprintf(
			"The ID is %q; it must be the object's name, as in: terraform import %s_%s.ADDRESS NAME. %s.", identity.Name.ValueString(), TypeName, example, problems[0]))
		return
	}
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("name"), identity.Name)...)
	if resp.Identity != nil {
		resp.Diagnostics.Append(resp.Identity.Set(ctx, identity)...)
	}
}

// importNamespaced imports what is in a namespace by NAMESPACE/NAME, or by its identity.
func importNamespaced(ctx context.Context, what, example string, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	identity, given := namespacedIdentity{}, fmt.Sprintf("%q", req.ID)
	switch {
	case req.ID != "" || req.Identity == nil || req.Identity.Raw.IsNull():
		namespace, name, _ := strings.Cut(req.ID, "/")
		identity.Namespace, identity.Name = types.StringValue(namespace), types.StringValue(name)
	default:
		resp.Diagnostics.Append(req.Identity.Get(ctx, &identity)...)
		given = fmt.Sprintf("namespace %q and name %q", identity.Namespace.ValueString(), identity.Name.ValueString())
	}
	if resp.Diagnostics.HasError() {
		return
	}
	if len(validation.IsDNS1123Label(identity.Namespace.ValueString())) > 0 || len(validation.IsDNS1123Subdomain(identity.Name.ValueString())) > 0 {
		resp.Diagnostics.AddError("Invalid import ID of "+article(what),
			fmt.Sprintf("The ID is %s; it must be NAMESPACE/NAME, with valid Kubernetes names, such as %s.", given, example))
		return
	}
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("namespace"), identity.Namespace)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("name"), identity.Name)...)
	if resp.Identity != nil {
		resp.Diagnostics.Append(resp.Identity.Set(ctx, identity)...)
	}
}
