package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
)

// trainingJob is elastic_training_job.
type trainingJob struct{ jobResource }

var (
	_ resource.ResourceWithConfigure      = &trainingJob{}
	_ resource.ResourceWithValidateConfig = &trainingJob{}
	_ resource.ResourceWithModifyPlan     = &trainingJob{}
	_ resource.ResourceWithImportState    = &trainingJob{}
	_ resource.ResourceWithIdentity       = &trainingJob{}
)

func newTrainingJob() resource.Resource {
	return &trainingJob{jobResource{name: "training_job", example: "default/low-prio-job", schema: trainingJobSchema}}
}

// Create makes the job's objects and records them before it waits for anything. An error after the Job was made taints
// the resource, and the next apply removes what there is; a wait that ends early is therefore no error.
func (r *trainingJob) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	r.connection.applies()
	ctx, addWarnings := collectWarnings(ctx, &resp.Diagnostics)
	defer addWarnings()
	var model trainingJobModel
	resp.Diagnostics.Append(model.load(ctx, req.Plan.Raw)...)
	if model.at("image_pull_policy").IsUnknown() { // as the image was
		model.defined["image_pull_policy"] = textOrNull(string(trainingjob.PullPolicy(model.text("image").ValueString())))
	}
	name := model.Name.ValueString()
	if name == "" {
		model.Name = types.StringValue(model.GenerateName.ValueString() + exampleLetters)
	}
	definition, diags := model.definition(ctx)
	resp.Diagnostics.Append(diags...)
	appendProblems(&resp.Diagnostics, invalidTrainingJob, definition.Problems(), pathOf, anyProblem)
	resp.Diagnostics.Append(checkModelFile(definition).Errors()...) // of a file that was not known before
	client, ctx, cancel := r.begin(ctx, &resp.Diagnostics, model.Timeouts.Create)
	defer cancel()
	if client == nil {
		return
	}

	c := newTrainingJobCluster(client, model.subject())
	resp.Diagnostics.Append(c.check(ctx, definition)...)
	if resp.Diagnostics.HasError() {
		return
	}
	var objects *trainingjob.Objects
	job, err := createNamed(name, model.GenerateName.ValueString(), func(name string) (*batchv1.Job, error) {
		model.Name, definition.Job.Name = types.StringValue(name), name
		c = newTrainingJobCluster(client, model.subject())
		if objects, diags = c.render(definition); diags.HasError() {
			return nil, nil
		}
		return c.createJob(ctx, objects.Job, model.GenerateName)
	})
	resp.Diagnostics.Append(diags...)
	c.subject.explain(&resp.Diagnostics, err)
	if resp.Diagnostics.HasError() {
		return
	}
	model.made(job)
	// Without the Job: it is suspended while its parts are created, which is not the meaning of phase Suspended.
	resp.Diagnostics.Append(model.observe(ctx, observation{status: trainingjob.Status{Phase: trainingjob.PhasePending}})...)
	resp.Diagnostics.Append(model.store(ctx, &resp.State.Raw)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, model.identity())...)

	resp.Diagnostics.Append(c.createParts(ctx, objects, model.ref())...)
	if resp.Diagnostics.HasError() {
		return
	}
	if model.WaitFor.ValueString() == waitForCreated && model.at("queue").IsNull() { // in a queue it starts when it is admitted
		resp.Diagnostics.Append(c.hintAtOnce(ctx, model.ref())...)
	}
	resp.Diagnostics.Append(c.wait(ctx, &model)...)
	resp.Diagnostics.Append(model.store(ctx, &resp.State.Raw)...)
}

// Read takes three requests: for the Job, its definition, and the master's report; in a queue one more for the
// Workload, and before the first step one for its pods. For a job that has not ended there is one more for each of its
// parts, all at the same time.
func (r *trainingJob) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	ctx, cancel := context.WithTimeout(ctx, jobReadTimeout)
	defer cancel()
	var model trainingJobModel
	resp.Diagnostics.Append(model.load(ctx, req.State.Raw)...)
	client, diags := r.connection.cluster()
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	finished := trainingjob.Phase(model.Phase.ValueString()).Finished()
	if job := model.liveJob(ctx, client, model.subject(), finished, resp); job != nil {
		c, before := newTrainingJobCluster(client, model.subject()), model.jobModel
		c.warnTerminating(ctx, &resp.Diagnostics, job)
		resp.Diagnostics.Append(model.read(ctx, client, job)...)
		if resp.Diagnostics.HasError() {
			return
		}
		finished = trainingjob.Phase(model.Phase.ValueString()).Finished()
		writers, diags := c.readParts(ctx, &model.jobModel, job, finished, model.parts(), func() ([]trainingjob.Object, error) {
			made := model
			made.takeMetadata(before)
			return made.madeOf(ctx, job)
		})
		resp.Diagnostics.Append(diags...)
		if model.at("image_pull_policy").IsNull() {
			model.defined["image_pull_policy"] = textOrNull(string(trainingjob.PullPolicy(model.text("image").ValueString())))
		}
		resp.Diagnostics.Append(model.store(ctx, &resp.State.Raw)...)
		resp.State.Raw = withDefaults(ctx, trainingJobSchema(ctx).Attributes, resp.State.Raw)
		if model.hasNotStarted() {
			resp.Diagnostics.Append(newTrainingJobCluster(client, model.subject()).hint(ctx, model.ref())...)
		}
		trainingJobDrift(ctx).observe(ctx, client, req, resp, job, trainingjob.ConfigMapName(job.Name), writers)
	}
}

// checkTrainingJob refuses an update that would overwrite what others have changed since its plan was made.
func checkTrainingJob(ctx context.Context, client *cluster.Client, req resource.UpdateRequest, job *batchv1.Job, configMap *corev1.ConfigMap) error {
	live, err := trainingjob.ParseDefinition(configMap)
	if err != nil {
		return err
	}
	live.ActiveDeadlineSeconds = job.Spec.ActiveDeadlineSeconds
	return trainingJobDrift(ctx).check(ctx, client, req, job, configMap, func(from tftypes.Value) (values, diag.Diagnostics) {
		var m trainingJobModel
		diags := m.load(ctx, from)
		diags.Append(m.readMetadata(client, job, trainingjob.ReservedLabel)...)
		diags.Append(m.readDefinition(ctx, live)...)
		diags.Append(m.store(ctx, &from)...)
		return valuesOf(from), diags
	})
}

// read copies the job's objects in the cluster to the state.
func (m *trainingJobModel) read(ctx context.Context, client *cluster.Client, job *batchv1.Job) diag.Diagnostics {
	kube := client.Kubernetes()
	imported := m.UID.IsNull()
	m.UID = types.StringValue(string(job.UID))
	diags := m.readMetadata(client, job, trainingjob.ReservedLabel)

	configMap, err := cluster.Get(ctx, client, kube.CoreV1().ConfigMaps(job.Namespace), trainingjob.ConfigMapName(job.Name))
	switch {
	case apierrors.IsNotFound(err) && imported:
		diags.AddError(fmt.Sprintf("Job %s/%s is not a training job", job.Namespace, job.Name), fmt.Sprintf(
			"ConfigMap %s/%s, which every training job of this provider has, does not exist. Other Jobs cannot be imported.",
			job.Namespace, trainingjob.ConfigMapName(job.Name)))
		return diags
	case apierrors.IsNotFound(err): // readParts reports it, unless the job has ended and does not need it
	case err != nil:
		m.subject().explain(&diags, err)
	default:
		definition, err := trainingjob.ParseDefinition(configMap)
		if err != nil {
			diags.AddError(fmt.Sprintf("Cannot read training job %s/%s", job.Namespace, job.Name),
				err.Error()+". Only Jobs that this provider created can be imported. For one of these, restore the ConfigMap, or replace the job.")
			break
		}
		definition.ActiveDeadlineSeconds = job.Spec.ActiveDeadlineSeconds
		diags.Append(m.readDefinition(ctx, definition)...)
	}

	reported, err := reportOf(ctx, client, job)
	if err != nil {
		explain(&diags, err)
		return diags
	}
	status, more := statusIn(reported)
	diags.Append(more...)
	if reported == nil && !imported { // what was known before is better than nothing
		status = m.asReported()
	}
	diags.Append(m.observe(ctx, observation{status: status, job: job, group: groupOf(ctx, client, job)})...)
	m.defaults()
	if m.MasterPriorityCheck.IsNull() {
		m.MasterPriorityCheck = types.StringValue(masterPriorityWarn)
	}
	return diags
}

// statusOf is the last report of a job's master; Pending before the first one.
func statusOf(ctx context.Context, client *cluster.Client, job *batchv1.Job) (trainingjob.Status, diag.Diagnostics) {
	reported, err := reportOf(ctx, client, job)
	if err != nil {
		var diags diag.Diagnostics
		explain(&diags, err)
		return trainingjob.Status{Phase: trainingjob.PhasePending}, diags
	}
	return statusIn(reported)
}

// reportOf is the ConfigMap in which a job's master reports; nil where there is none.
func reportOf(ctx context.Context, client *cluster.Client, job *batchv1.Job) (*corev1.ConfigMap, error) {
	reported, err := cluster.Get(ctx, client, client.Kubernetes().CoreV1().ConfigMaps(job.Namespace), trainingjob.StatusName(job.Name))
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return reported, err
}

// statusIn is the status in a report; Pending without a report, and with a warning if it cannot be read.
func statusIn(reported *corev1.ConfigMap) (trainingjob.Status, diag.Diagnostics) {
	var diags diag.Diagnostics
	if reported == nil {
		reported = &corev1.ConfigMap{}
	}
	status, err := trainingjob.DecodeStatus(reported)
	if err != nil {
		diags.AddWarning("Unreadable job status", err.Error()+".")
		return trainingjob.Status{Phase: trainingjob.PhasePending}, diags
	}
	return status, diags
}

// Update writes what may change while the job runs to the ConfigMap that the master watches, and the metadata to
// every object.
func (r *trainingJob) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	r.connection.applies()
	ctx, addWarnings := collectWarnings(ctx, &resp.Diagnostics)
	defer addWarnings()
	var model, prior trainingJobModel
	resp.Diagnostics.Append(model.load(ctx, req.Plan.Raw)...)
	resp.Diagnostics.Append(prior.load(ctx, req.State.Raw)...)
	definition, diags := model.definition(ctx)
	resp.Diagnostics.Append(diags...)
	appendProblems(&resp.Diagnostics, invalidTrainingJob, definition.Problems(), pathOf, anyProblem)
	client, ctx, cancel := r.begin(ctx, &resp.Diagnostics, model.Timeouts.Update)
	defer cancel()
	if client == nil {
		return
	}

	c := newTrainingJobCluster(client, model.subject())
	before, diags := prior.definition(ctx)
	resp.Diagnostics.Append(diags...)
	if (prior.lacks() || prior.isChanged()) && !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(c.repair(ctx, &prior.jobModel, definition)...)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(c.update(ctx, model.ref(), before, definition, func(job *batchv1.Job, configMap *corev1.ConfigMap) error {
		return checkTrainingJob(ctx, client, req, job, configMap)
	})...)
	if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(c.changePrefix(ctx, model.ref(), prior.GenerateName, model.GenerateName)...)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	if model.Phase.IsUnknown() { // the plan shows that this update waits
		model.observedModel = prior.observedModel
		resp.Diagnostics.Append(model.store(ctx, &resp.State.Raw)...)
		resp.Diagnostics.Append(c.wait(ctx, &model)...)
	}
	resp.Diagnostics.Append(model.store(ctx, &resp.State.Raw)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, model.identity())...)
}

// Delete removes the Job, waits until none of its pods is left, and removes the rest.
func (r *trainingJob) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var model trainingJobModel
	r.delete(ctx, req, resp, &model, &model.jobModel, func(ctx context.Context, client *cluster.Client) diag.Diagnostics {
		return newTrainingJobCluster(client, model.subject()).delete(ctx, model.ref(), model.parts(), !model.at("queue").IsNull())
	})
}

// parts are the names of the job's objects besides the Job.
func (m *trainingJobModel) parts() []trainingjob.Object {
	return trainingjob.NamedParts(m.ref(), m.text("service_account_name").ValueString() == "", !m.at("queue").IsNull())
}
