package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainingjob"
)

// trainingJob is elastic_training_job.
type trainingJob struct {
	connection *connection
}

var (
	_ resource.ResourceWithConfigure      = &trainingJob{}
	_ resource.ResourceWithValidateConfig = &trainingJob{}
	_ resource.ResourceWithModifyPlan     = &trainingJob{}
	_ resource.ResourceWithImportState    = &trainingJob{}
	_ resource.ResourceWithIdentity       = &trainingJob{}
)

func newTrainingJob() resource.Resource { return &trainingJob{} }

func (r *trainingJob) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_training_job"
}

func (r *trainingJob) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = trainingJobSchema(ctx)
}

func (r *trainingJob) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identitySchema("training job", true)
}

func (r *trainingJob) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.connection = connectionOf(req.ProviderData, &resp.Diagnostics)
}

// Create makes the job's objects and records them before it waits for anything. An error after the Job was made taints
// the resource, and the next apply removes what there is; a wait that ends early is therefore no error.
func (r *trainingJob) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	r.connection.applies()
	var model trainingJobModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &model)...)
	timeout, diags := model.Timeouts.Create(ctx, jobTimeout)
	resp.Diagnostics.Append(diags...)
	definition, diags := model.definition(ctx)
	resp.Diagnostics.Append(diags...)
	addProblems(&resp.Diagnostics, definition.Problems(), func(trainingjob.Problem) bool { return true })
	client, diags := r.connection.cluster()
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errTimeIsUp)
	defer cancel()

	c := newTrainingJobCluster(client, model.subject())
	resp.Diagnostics.Append(c.check(ctx, definition)...)
	if resp.Diagnostics.HasError() {
		return
	}
	objects, job, diags := c.createJob(ctx, definition)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	model.UID = types.StringValue(string(job.UID))
	resp.Diagnostics.Append(model.observe(ctx, sighting{status: trainingjob.Status{Phase: trainingjob.PhasePending}, job: job})...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, model.identity())...)

	resp.Diagnostics.Append(c.createParts(ctx, objects, model.ref())...)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(c.wait(ctx, &model)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}

// Read costs three requests: the Job, what was asked for, and what the master reports; under a queue one more, for what
// the queue says.
func (r *trainingJob) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	ctx, cancel := context.WithTimeout(ctx, jobReadTimeout)
	defer cancel()
	var model trainingJobModel
	resp.Diagnostics.Append(req.State.Get(ctx, &model)...)
	client, diags := r.connection.cluster()
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	finished := trainingjob.Phase(model.Phase.ValueString()).Finished()
	if job := model.liveJob(ctx, client, model.subject(), finished, resp); job != nil {
		resp.Diagnostics.Append(model.read(ctx, client, job)...)
		resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
	}
}

// read takes over what the cluster holds of a job.
func (m *trainingJobModel) read(ctx context.Context, client *cluster.Client, job *batchv1.Job) diag.Diagnostics {
	kube := client.Kubernetes()
	m.UID = types.StringValue(string(job.UID))
	diags := m.readMetadata(client, job, trainingjob.ReservedLabel)

	asked, err := cluster.Get(ctx, client, kube.CoreV1().ConfigMaps(job.Namespace), trainingjob.ConfigMapName(job.Name))
	switch {
	case apierrors.IsNotFound(err):
		diags.AddWarning(fmt.Sprintf("ConfigMap %s/%s is missing", job.Namespace, trainingjob.ConfigMapName(job.Name)),
			"It says what the job trains and how many workers it may have; a master that has to start again cannot without it. "+
				"Replace the job: terraform apply -replace=ADDRESS.")
	case err != nil:
		m.subject().explain(&diags, err)
	default:
		definition, err := trainingjob.DefinitionOf(asked)
		if err != nil {
			diags.AddError(fmt.Sprintf("Cannot read training job %s/%s", job.Namespace, job.Name),
				err.Error()+". A Job that this provider did not make cannot be imported; for one that it made, restore the ConfigMap, or replace the job.")
			break
		}
		diags.Append(m.readDefinition(ctx, definition)...)
	}

	status, more := statusOf(ctx, client, job)
	diags.Append(more...)
	if more.HasError() {
		return diags
	}
	diags.Append(m.observe(ctx, sighting{status: status, job: job, group: groupOf(ctx, client, job)})...)
	m.defaults()
	return diags
}

// statusOf is what a job's master last reported; Pending before it has reported anything.
func statusOf(ctx context.Context, client *cluster.Client, job *batchv1.Job) (trainingjob.Status, diag.Diagnostics) {
	var diags diag.Diagnostics
	pending := trainingjob.Status{Phase: trainingjob.PhasePending}
	reported, err := cluster.Get(ctx, client, client.Kubernetes().CoreV1().ConfigMaps(job.Namespace), trainingjob.StatusName(job.Name))
	switch {
	case apierrors.IsNotFound(err):
		reported = &corev1.ConfigMap{}
	case err != nil:
		explain(&diags, err)
		return pending, diags
	}
	status, err := trainingjob.DecodeStatus(reported)
	if err != nil {
		diags.AddWarning("The job's status cannot be read", err.Error()+".")
		return pending, diags
	}
	return status, diags
}

// Update writes what may change while the job runs to the ConfigMap that the master watches, and the metadata to
// every object.
func (r *trainingJob) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	r.connection.applies()
	var model, prior trainingJobModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &model)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &prior)...)
	timeout, diags := model.Timeouts.Update(ctx, jobTimeout)
	resp.Diagnostics.Append(diags...)
	definition, diags := model.definition(ctx)
	resp.Diagnostics.Append(diags...)
	addProblems(&resp.Diagnostics, definition.Problems(), func(trainingjob.Problem) bool { return true })
	client, diags := r.connection.cluster()
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errTimeIsUp)
	defer cancel()

	c := newTrainingJobCluster(client, model.subject())
	before, diags := prior.definition(ctx)
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(c.update(ctx, model.ref(), before, definition)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if model.Phase.IsUnknown() { // the plan says that this update waits
		model.observedModel = prior.observedModel
		resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
		resp.Diagnostics.Append(c.wait(ctx, &model)...)
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, model.identity())...)
}

// Delete removes the Job, waits until none of its pods is left, and removes the rest.
func (r *trainingJob) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	r.connection.applies()
	var model trainingJobModel
	resp.Diagnostics.Append(req.State.Get(ctx, &model)...)
	timeout, diags := model.Timeouts.Delete(ctx, jobTimeout)
	resp.Diagnostics.Append(diags...)
	client, diags := r.connection.cluster()
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errTimeIsUp)
	defer cancel()
	c := newTrainingJobCluster(client, model.subject())
	resp.Diagnostics.Append(c.delete(ctx, model.ref(), model.ServiceAccountName.ValueString() == "", !model.Queue.IsNull())...)
}

// ImportState takes namespace/name, or on Terraform 1.12 and later the identity.
func (r *trainingJob) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	importNamespaced(ctx, "training job", "default/low-prio-job", req, resp)
}
