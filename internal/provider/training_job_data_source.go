package provider

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	resourceschema "github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster/jobparts"
)

// trainingJobData is data.elastic_training_job.
type trainingJobData struct{ dataSource }

var _ datasource.DataSourceWithConfigure = &trainingJobData{}

func newTrainingJobData() datasource.DataSource {
	return &trainingJobData{dataSource{name: "training_job"}}
}

func (d *trainingJobData) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	attributes := map[string]schema.Attribute{
		"name":      schema.StringAttribute{MarkdownDescription: "Name of the job.", Required: true, Validators: []validator.String{trainingJobName}},
		"namespace": schema.StringAttribute{MarkdownDescription: "Namespace of the job; `default` by default.", Optional: true, Validators: []validator.String{namespaceName}},
		"uid":       readText("UID of the job's Job."),
	}
	for name, attribute := range observedAttributes() {
		attributes[name] = asRead(attribute)
	}
	attributes["goodput_seconds"] = schema.MapAttribute{
		MarkdownDescription: "Time of the job so far, over all of its masters, in seconds by goodput phase (`" + goodputPhases() + "`). " +
			"Null before the first report.",
		ElementType: types.Float64Type, Computed: true,
	}
	attributes["disruptions"] = disruptionsAttribute()
	resp.Schema = schema.Schema{
		MarkdownDescription: "The status of a training job that another configuration manages. It is read at every plan, so an output that uses it may change at every plan.",
		Attributes:          attributes,
	}
}

func goodputPhases() string {
	var names []string
	for _, phase := range trainingjob.GoodputPhases() {
		names = append(names, string(phase))
	}
	return strings.Join(names, "`, `")
}

// asRead is a resource's computed attribute as a data source has it.
func asRead(attribute resourceschema.Attribute) schema.Attribute {
	description := attribute.GetMarkdownDescription()
	switch a := attribute.(type) {
	case resourceschema.Int64Attribute:
		return readInteger(description)
	case resourceschema.Float64Attribute:
		return schema.Float64Attribute{MarkdownDescription: description, Computed: true}
	case resourceschema.MapAttribute:
		return schema.MapAttribute{MarkdownDescription: description, ElementType: a.ElementType, Computed: true}
	case resourceschema.ListAttribute:
		return schema.ListAttribute{MarkdownDescription: description, ElementType: a.ElementType, Computed: true}
	case resourceschema.StringAttribute:
		return readText(description)
	default:
		panic(fmt.Sprintf("a training job reports a %T", attribute)) // observedAttributes and this switch are one list
	}
}

// trainingJobDataModel is the data source's value.
type trainingJobDataModel struct {
	Name      types.String `tfsdk:"name"`
	Namespace types.String `tfsdk:"namespace"`
	UID       types.String `tfsdk:"uid"`
	Goodput   types.Map    `tfsdk:"goodput_seconds"`

	Disruptions types.List `tfsdk:"disruptions"`
	observedModel
}

// Read costs two requests, the Job and what the master reports, and under a queue a third, the Workload. After a
// preemption Events, pods and Workloads are listed for the preemptor's name.
func (d *trainingJobData) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	ctx, cancel := context.WithTimeout(ctx, dataSourceTimeout)
	defer cancel()
	var model trainingJobDataModel
	client := d.begin(ctx, req, resp, &model)
	if client == nil {
		return
	}
	namespace, name := namespaceOf(model.Namespace), model.Name.ValueString()
	job, err := cluster.Get(ctx, client, client.Kubernetes().BatchV1().Jobs(namespace), name)
	if apierrors.IsNotFound(err) {
		resp.Diagnostics.AddError("Training job not found", fmt.Sprintf(
			"Job %s/%s does not exist. If this configuration creates the job, use the resource's attributes instead: elastic_training_job.NAME.phase.", namespace, name))
		return
	}
	if err != nil {
		explain(&resp.Diagnostics, err)
		return
	}
	about := subject{importID: namespace + "/" + name}
	newTrainingJobCluster(client, about).warnTerminating(ctx, &resp.Diagnostics, job)
	status, diags := statusOf(ctx, client, job)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	model.UID = types.StringValue(string(job.UID))
	resp.Diagnostics.Append(model.observe(ctx, observation{status: status, job: job, group: groupOf(ctx, client, job)})...)
	model.Goodput = types.MapNull(types.Float64Type)
	if split := status.GoodputSplit; split != nil {
		seconds, diags := types.MapValueFrom(ctx, types.Float64Type, split.Seconds)
		resp.Diagnostics.Append(diags...)
		model.Goodput = seconds
	}
	disruptions, diags := disruptionsOf(ctx, jobparts.Disruptions(ctx, client, namespace, status))
	resp.Diagnostics.Append(diags...)
	model.Disruptions = disruptions
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}
