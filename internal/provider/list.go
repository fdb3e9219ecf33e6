package provider

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	listing "github.com/hashicorp/terraform-plugin-framework/list"
	listschema "github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	selectors "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/task"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
)

// finder lists the objects of a kind of resource in the cluster, for `terraform query`: identities from one list of
// metadata and, on request, the resources that an import of each would read.
type finder struct {
	resource.ResourceWithConfigure
	namespaced bool
	kind       schema.GroupVersionKind
	// label is on the objects that are meant, with their own name as its value; "" where all of the kind are.
	label string
	// reserved begins the names of objects that Kubernetes makes itself, and that no configuration can have; "" for none.
	reserved string

	connection *connection
}

var _ listing.ListResourceWithConfigure = &finder{}

// listModel is a list block's configuration; the schema of cluster-scoped objects has no Namespace.
type listModel struct {
	Namespace     types.String
	LabelSelector types.String
}

// newFinder is the list resource of the plain objects of a kind.
func (o *object[T]) newFinder() *finder {
	f := &finder{ResourceWithConfigure: o, namespaced: o.namespaced, kind: schema.FromAPIVersionAndKind(o.apiVersion, o.title)}
	if f.kind.Kind == string(aPriorityClass) {
		f.reserved = systemPrefix
	}
	return f
}

// newJobFinder is the list resource of a resource that consists of a Job and its related objects.
func newJobFinder(of resource.ResourceWithConfigure, label string) *finder {
	return &finder{ResourceWithConfigure: of, namespaced: true, kind: batchv1.SchemeGroupVersion.WithKind("Job"), label: label}
}

// ListResources lists the kinds that can be searched: all that are resources.
func (p *elastic) ListResources(ctx context.Context) []func() listing.ListResource {
	var all []func() listing.ListResource
	for _, newResource := range p.Resources(ctx) {
		all = append(all, func() listing.ListResource { return finderOf(newResource()) })
	}
	return all
}

func finderOf(r resource.Resource) *finder {
	switch r := r.(type) {
	case interface{ newFinder() *finder }:
		return r.newFinder()
	case *trainingJob:
		return newJobFinder(r, trainingjob.LabelJobName)
	case *taskResource:
		return newJobFinder(r, task.LabelTask)
	}
	panic(fmt.Sprintf("%T cannot be listed", r))
}

func (f *finder) Configure(ctx context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	f.connection = connectionOf(req.ProviderData, &resp.Diagnostics)
	f.ResourceWithConfigure.Configure(ctx, req, resp)
}

func (f *finder) ListResourceConfigSchema(_ context.Context, _ listing.ListResourceSchemaRequest, resp *listing.ListResourceSchemaResponse) {
	resp.Schema = listschema.Schema{
		MarkdownDescription: "Lists existing objects in the cluster, for inspection or import. The resource of the same name describes the results.\n\n" +
			"List resources need Terraform 1.14, whose `terraform query` reads them from `*.tfquery.hcl` files.",
		Attributes: map[string]listschema.Attribute{
			"label_selector": listschema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "Selects objects with these labels, in kubectl's notation: `team=vision,stage!=test`.",
			},
		},
	}
	if f.reserved != "" {
		resp.Schema.MarkdownDescription += fmt.Sprintf("\n\nObjects whose names begin with `%s` are omitted: Kubernetes creates them, and they cannot be managed.", f.reserved)
	}
	if f.namespaced {
		resp.Schema.Attributes["namespace"] = listschema.StringAttribute{
			Optional:            true,
			MarkdownDescription: "Selects objects in this namespace; all namespaces by default.",
		}
	}
}

func (f *finder) List(ctx context.Context, req listing.ListRequest, stream *listing.ListResultsStream) {
	found, diags := f.find(ctx, req.Config)
	if diags.HasError() {
		stream.Results = listing.ListResultsStreamDiagnostics(diags)
		return
	}
	stream.Results = func(push func(listing.ListResult) bool) {
		given := int64(0)
		for _, o := range found {
			if req.Limit > 0 && given == req.Limit {
				return
			}
			result := req.NewListResult(ctx)
			result.DisplayName = o.Name
			identity := map[string]string{"name": o.Name}
			if f.namespaced {
				result.DisplayName, identity["namespace"] = o.Namespace+"/"+o.Name, o.Namespace
			}
			for name, value := range identity {
				result.Diagnostics.Append(result.Identity.SetAttribute(ctx, path.Root(name), value)...)
			}
			if req.IncludeResource && !f.read(ctx, identity, &result) {
				continue // it went meanwhile
			}
			given++
			if !push(result) {
				return
			}
		}
	}
}

// find lists the objects that the configuration selects.
func (f *finder) find(ctx context.Context, config tfsdk.Config) ([]*metav1.PartialObjectMetadata, diag.Diagnostics) {
	var model listModel
	diags := config.GetAttribute(ctx, path.Root("label_selector"), &model.LabelSelector)
	if f.namespaced {
		diags.Append(config.GetAttribute(ctx, path.Root("namespace"), &model.Namespace)...)
	}
	selector, err := selectors.Parse(model.LabelSelector.ValueString())
	if err != nil {
		diags.AddAttributeError(path.Root("label_selector"), "Invalid label selector", fmt.Sprintf("%v. Use KEY=VALUE, KEY!=VALUE or KEY, separated by commas.", err))
	}
	client, more := f.connection.cluster()
	diags.Append(more...)
	if diags.HasError() {
		return nil, diags
	}
	if f.label != "" {
		marked, err := selectors.Parse(f.label)
		if err != nil {
			panic(err) // a constant
		}
		required, _ := marked.Requirements()
		selector = selector.Add(required...)
	}
	// Every kind here has the plural that is made of its name by the rule.
	plural, _ := meta.UnsafeGuessKindToResource(f.kind)
	found, err := cluster.ListMetadata(ctx, client, f.kind.Kind, plural, model.Namespace.ValueString(), metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		explain(&diags, err)
		return nil, diags
	}
	return slices.DeleteFunc(found, func(o *metav1.PartialObjectMetadata) bool {
		isPart := f.label != "" && o.Labels[f.label] != o.Name // of a job
		return isPart || f.reserved != "" && strings.HasPrefix(o.Name, f.reserved)
	}), diags
}

// read fills in the resource as an import of it would.
func (f *finder) read(ctx context.Context, identity map[string]string, result *listing.ListResult) (there bool) {
	var described resource.SchemaResponse
	f.Schema(ctx, resource.SchemaRequest{}, &described)
	state := tfsdk.State{Schema: described.Schema, Raw: tftypes.NewValue(described.Schema.Type().TerraformType(ctx), nil)}
	for name, value := range identity {
		result.Diagnostics.Append(state.SetAttribute(ctx, path.Root(name), attr.Value(types.StringValue(value)))...)
	}
	if result.Diagnostics.HasError() {
		return true
	}
	response := resource.ReadResponse{State: state, Identity: result.Identity}
	f.Read(ctx, resource.ReadRequest{State: state, Identity: result.Identity}, &response)
	result.Diagnostics.Append(response.Diagnostics...)
	result.Resource.Raw = response.State.Raw
	return !response.State.Raw.IsNull()
}
