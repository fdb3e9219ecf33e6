package provider

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainingjob"
)

// Timeouts where the configuration gives none. Create and update include the wait; delete includes the pods' grace periods.
const (
	trainingJobTimeout     = 10 * time.Minute
	trainingJobReadTimeout = 2 * time.Minute
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
	timeout, diags := model.Timeouts.Create(ctx, trainingJobTimeout)
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

	c := trainingJobCluster(client, model.subject())
	resp.Diagnostics.Append(c.checkPriorityClasses(ctx, classesOf(definition)...)...)
	resp.Diagnostics.Append(c.checkQueue(ctx, definition)...)
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
	ctx, cancel := context.WithTimeout(ctx, trainingJobReadTimeout)
	defer cancel()
	var model trainingJobModel
	resp.Diagnostics.Append(req.State.Get(ctx, &model)...)
	client, diags := r.connection.cluster()
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	// Also for a job that is gone: Terraform before 1.12 keeps no identity, and the framework asks for one.
	resp.Diagnostics.Append(resp.Identity.Set(ctx, model.identity())...)
	kube, ref := client.Kubernetes(), model.ref()
	job, err := cluster.Get(ctx, client, kube.BatchV1().Jobs(ref.Namespace), ref.Name)
	if apierrors.IsNotFound(err) || err == nil && ref.UID != "" && job.UID != ref.UID {
		// A Job with another UID is another job. One that had finished was removed by a TTL, and its end stays known.
		finished := trainingjob.Phase(model.Phase.ValueString()).Finished()
		if !finished || err == nil || model.OnFinished.ValueString() != onFinishedKeep {
			resp.State.RemoveResource(ctx)
		}
		return
	}
	if err != nil {
		model.subject().explain(&resp.Diagnostics, err)
		return
	}
	resp.Diagnostics.Append(model.read(ctx, client, job)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}

// read takes over what the cluster holds of a job.
func (m *trainingJobModel) read(ctx context.Context, client *cluster.Client, job *batchv1.Job) diag.Diagnostics {
	kube := client.Kubernetes()
	m.UID = types.StringValue(string(job.UID))
	diags := m.readMetadata(client, job)

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

// defaults are for an imported job: what the cluster does not hold is as if it were not configured.
func (m *trainingJobModel) defaults() {
	if m.WaitFor.IsNull() {
		m.WaitFor = types.StringValue(waitForCreated)
	}
	if m.OnFinished.IsNull() {
		m.OnFinished = types.StringValue(onFinishedKeep)
	}
	if m.FailOnError.IsNull() {
		m.FailOnError = types.BoolValue(false)
	}
}

// Update writes what may change while the job runs to the ConfigMap that the master watches, and the metadata to
// every object.
func (r *trainingJob) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	r.connection.applies()
	var model, prior trainingJobModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &model)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &prior)...)
	timeout, diags := model.Timeouts.Update(ctx, trainingJobTimeout)
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

	c := trainingJobCluster(client, model.subject())
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
	timeout, diags := model.Timeouts.Delete(ctx, trainingJobTimeout)
	resp.Diagnostics.Append(diags...)
	client, diags := r.connection.cluster()
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errTimeIsUp)
	defer cancel()
	c := trainingJobCluster(client, model.subject())
	resp.Diagnostics.Append(c.delete(ctx, model.ref(), model.ServiceAccountName.ValueString() == "", !model.Queue.IsNull())...)
}

// ImportState takes namespace/name, or on Terraform 1.12 and later the identity.
func (r *trainingJob) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	importNamespaced(ctx, "training job", "default/low-prio-job", req, resp)
}

// trainingJobCluster acts on the objects of one training job.
func trainingJobCluster(client *cluster.Client, about subject) *jobCluster {
	return &jobCluster{client: client, subject: about, jobKind: jobKind{
		noun: "Training job", label: trainingjob.LabelJobName,
		account: "The job's master gets a ServiceAccount of its own, with a Role of what it does",
	}}
}

// isThere is an error unless there is a Job with the UID that is meant.
func (c *jobCluster) isThere(ctx context.Context, ref trainingjob.JobRef) error {
	job, err := cluster.Get(ctx, c.client, c.client.Kubernetes().BatchV1().Jobs(ref.Namespace), ref.Name)
	if err == nil && job.UID != ref.UID {
		return c.client.Wrap("update", jobRef(ref), &cluster.RecreatedError{Expected: ref.UID, Got: job.UID})
	}
	return err
}

func jobRef(ref trainingjob.JobRef) cluster.Ref {
	return cluster.Ref{Kind: "Job", Namespace: ref.Namespace, Name: ref.Name}
}
