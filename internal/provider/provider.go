// Package provider is the Terraform provider: schemas, plans and state. It translates between HCL and Kubernetes
// objects. Package internal/cluster sends objects to the cluster, and internal/api/trainingjob defines the objects of a
// training job. Three rules hold: a plan needs no cluster unless there is something to refresh, state is written before
// any wait, and an error names its remedy.
package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
)

// TypeName is the first word of every resource's type.
const TypeName = "elastic"

// elastic is the provider.
type elastic struct {
	version string
	env     Environment
}

var (
	_ provider.ProviderWithFunctions      = &elastic{}
	_ provider.ProviderWithActions        = &elastic{}
	_ provider.ProviderWithListResources  = &elastic{}
	_ provider.ProviderWithValidateConfig = &elastic{}
)

// New returns the provider's constructor. The version is in the schema and in the User-Agent of requests; the
// environment is read when the provider is configured.
func New(version string, env Environment) func() provider.Provider {
	return func() provider.Provider { return &elastic{version: version, env: env} }
}

func (p *elastic) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName, resp.Version = TypeName, p.version
}

func (p *elastic) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Elastic, preemptible training on Kubernetes: priority classes, training jobs that continue with fewer workers, " +
			"and a plan that forecasts evictions. The attributes that select the cluster, and their `KUBE_*` environment variables, " +
			"are those of the hashicorp/kubernetes provider, so you can copy its configuration.",
		Attributes: configAttributes(),
	}
}

// ValidateConfig finds contradictions when nothing is planned yet.
func (p *elastic) ValidateConfig(ctx context.Context, req provider.ValidateConfigRequest, resp *provider.ValidateConfigResponse) {
	var model configModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &model)...)
	if resp.Diagnostics.HasError() {
		return
	}
	_, _, diags := resolve(ctx, model, p.env)
	resp.Diagnostics.Append(diags...)
	if !model.Forecast.IsUnknown() { // while Terraform validates, much is not known yet
		_, diags = resolveForecast(model)
		resp.Diagnostics.Append(diags...)
	}
}

// Configure resolves the configuration. It sends no request and reads no file: the cluster may not exist yet.
func (p *elastic) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	var model configModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &model)...)
	if resp.Diagnostics.HasError() {
		return
	}
	config, unknown, diags := resolve(ctx, model, p.env)
	resp.Diagnostics.Append(diags...)
	forecasts, diags := resolveForecast(model)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	if len(unknown) > 0 && req.ClientCapabilities.DeferralAllowed {
		resp.Deferred = &provider.Deferred{Reason: provider.DeferredReasonProviderConfigUnknown}
	}
	config.UserAgent = "terraform-provider-elastic/" + p.version + " terraform/" + req.TerraformVersion
	connection := newConnection(config, unknown, forecasts)
	resp.ResourceData = connection
	resp.DataSourceData = connection
	resp.ListResourceData = connection
	resp.ActionData = connection
}

// Resources lists the kinds of resources, in the order of the documentation.
func (p *elastic) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{
		newPriorityClass(),
		newWorkloadPriorityClass(),
		newResourceFlavor(),
		newClusterQueue(),
		newLocalQueue(),
		newCohort(),
		newTopology(),
		newAdmissionCheck(),
		newTrainingJob,
		newTask(p.version),
	}
}

// DataSources lists the kinds of data sources, in the order of the documentation.
func (p *elastic) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{
		newClusterCapacityData,
		newForecastData,
		newTrainingJobData,
		newWorkloadsData,
	}
}
