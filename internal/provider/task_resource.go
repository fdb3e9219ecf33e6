package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/task"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
)

// taskResource is elastic_task.
type taskResource struct {
	jobResource
	version string // the provider's, which is that of the trainer's image
}

var (
	_ resource.ResourceWithConfigure      = &taskResource{}
	_ resource.ResourceWithValidateConfig = &taskResource{}
	_ resource.ResourceWithModifyPlan     = &taskResource{}
	_ resource.ResourceWithImportState    = &taskResource{}
	_ resource.ResourceWithIdentity       = &taskResource{}
)

func newTask(version string) func() resource.Resource {
	return func() resource.Resource {
		return &taskResource{jobResource: jobResource{name: "task", example: "default/low", schema: taskSchema}, version: version}
	}
}

// Create makes the task's objects and records them before it waits for anything. An error after the Job was made taints
// the resource, and the next apply removes what there is; a wait that ends early is therefore no error.
func (r *taskResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	r.connection.applies()
	ctx, addWarnings := collectWarnings(ctx, &resp.Diagnostics)
	defer addWarnings()
	var model, config taskModel
	var secrets types.Map
	resp.Diagnostics.Append(model.load(ctx, req.Plan.Raw)...)
	resp.Diagnostics.Append(config.load(ctx, req.Config.Raw)...)
	model.settle(ctx, &config, &taskModel{}, r.version)                                         // applies a file that was unknown to the plan
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("secrets_wo"), &secrets)...) // plans do not have it
	values, diags := stringMap(ctx, secrets)
	resp.Diagnostics.Append(diags...)
	model.defined["secrets_wo"] = secrets
	name := model.Name.ValueString()
	if name == "" {
		model.Name = types.StringValue(model.GenerateName.ValueString() + exampleLetters)
	}
	a, diags := model.spec(ctx)
	resp.Diagnostics.Append(diags...)
	t, at := a.complete(r.version), attributeOrFile(req.Config.Raw)
	if !resp.Diagnostics.HasError() {
		appendProblems(&resp.Diagnostics, invalidTask, t.Problems(), at, anyProblem)
	}
	client, ctx, cancel := r.begin(ctx, &resp.Diagnostics, model.Timeouts.Create)
	defer cancel()
	if client == nil {
		return
	}

	c := newTaskCluster(client, model.subject())
	resp.Diagnostics.Append(c.check(ctx, t, at)...)
	if resp.Diagnostics.HasError() {
		return
	}
	var objects *task.Objects
	job, err := createNamed(name, model.GenerateName.ValueString(), func(name string) (*batchv1.Job, error) {
		model.Name, t.Name = types.StringValue(name), name
		c = newTaskCluster(client, model.subject())
		if objects, diags = c.render(ctx, t, values); diags.HasError() {
			return nil, nil
		}
		return c.createJob(ctx, objects.Job, model.GenerateName)
	})
	resp.Diagnostics.Append(diags...)
	c.subject.explain(&resp.Diagnostics, err)
	if resp.Diagnostics.HasError() {
		return
	}
	model.defined["secrets_wo"] = types.MapNull(types.StringType)
	model.made(job)
	model.Logs = types.StringValue(logsCommand(t.Namespace, t.Name, t.NumNodes))
	model.observe(progressOf(job, nil))
	resp.Diagnostics.Append(model.store(ctx, &resp.State.Raw)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, model.identity())...)

	job, diags = c.createParts(ctx, objects, job)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	model.observe(progressOf(job, nil))
	if model.WaitFor.ValueString() == waitForCreated && model.Phase.ValueString() == taskStarting {
		resp.Diagnostics.Append(c.hintAtOnce(ctx, model.ref())...)
	}
	resp.Diagnostics.Append(c.wait(ctx, &model)...)
	resp.Diagnostics.Append(model.store(ctx, &resp.State.Raw)...)
}

// Read takes two requests, for the Job and its definition, in a queue a third for the Workload, and before its pods run
// one for these. For a task that has not ended there is one more for each of its parts, all at the same time.
func (r *taskResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	ctx, cancel := context.WithTimeout(ctx, jobReadTimeout)
	defer cancel()
	var model taskModel
	resp.Diagnostics.Append(model.load(ctx, req.State.Raw)...)
	client, diags := r.connection.cluster()
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	if job := model.liveJob(ctx, client, model.subject(), taskFinished(model.Phase.ValueString()), resp); job != nil {
		c, before := newTaskCluster(client, model.subject()), model.jobModel
		c.warnTerminating(ctx, &resp.Diagnostics, job)
		resp.Diagnostics.Append(model.read(ctx, client, job)...)
		if resp.Diagnostics.HasError() {
			return
		}
		writers, diags := c.readParts(ctx, &model.jobModel, job, taskFinished(model.Phase.ValueString()), model.liveParts(ctx), func() ([]task.Object, error) {
			made := model
			made.takeMetadata(before)
			return made.madeOf(ctx, job, r.version)
		})
		resp.Diagnostics.Append(diags...)
		model.settle(ctx, &model, &taskModel{}, r.version) // what is not null in it stays as it is
		resp.Diagnostics.Append(model.store(ctx, &resp.State.Raw)...)
		resp.State.Raw = withDefaults(ctx, taskSchema(ctx).Attributes, resp.State.Raw)
		if model.Phase.ValueString() == taskStarting {
			resp.Diagnostics.Append(newTaskCluster(client, model.subject()).hint(ctx, model.ref())...)
		}
		taskDrift(ctx).observe(ctx, client, req, resp, job, "", writers)
	}
}

// checkTask refuses an update that would overwrite changes of others since its plan was made. For a task only its Job
// matters: its ConfigMap is immutable.
func checkTask(ctx context.Context, client *cluster.Client, req resource.UpdateRequest, job *batchv1.Job) error {
	return taskDrift(ctx).check(ctx, client, req, job, nil, func(from tftypes.Value) (values, diag.Diagnostics) {
		var m taskModel
		diags := m.load(ctx, from)
		a, more := m.spec(ctx)
		if diags.Append(more...); diags.HasError() {
			return nil, diags
		}
		diags.Append(m.readMetadata(client, withoutLabels(job, a.file.Labels, m.Labels), task.ReservedLabel)...)
		diags.Append(m.readTask(ctx, a.OfJob(job), false)...)
		diags.Append(m.store(ctx, &from)...)
		return valuesOf(from), diags
	})
}

// read copies the task's objects in the cluster to the state.
func (m *taskModel) read(ctx context.Context, client *cluster.Client, job *batchv1.Job) diag.Diagnostics {
	imported := m.UID.IsNull()
	m.UID = types.StringValue(string(job.UID))
	progress := progressOf(job, workloadOf(ctx, client, job))
	a, diags := m.spec(ctx)
	if diags.HasError() { // an error would keep the user from planning anything, a correction too
		m.observe(progress)
		return diag.Diagnostics{diag.NewWarningDiagnostic(fmt.Sprintf("Unreadable definition of task %s/%s", job.Namespace, job.Name),
			"This release of the provider rejects the task in the state, so the task is not compared with the cluster. "+diags.Errors()[0].Detail())}
	}
	diags.Append(m.readMetadata(client, withoutLabels(job, a.file.Labels, m.Labels), task.ReservedLabel)...)
	name := fmt.Sprintf("ConfigMap %s/%s", job.Namespace, task.ConfigMapName(job.Name))
	configMap, err := cluster.Get(ctx, client, client.Kubernetes().CoreV1().ConfigMaps(job.Namespace), task.ConfigMapName(job.Name))
	if err != nil && !apierrors.IsNotFound(err) {
		m.subject().explain(&diags, err)
		return diags
	}
	wrong := ""
	var live task.Task
	switch {
	case err != nil:
		wrong = "There is no " + name
	case !trainingjob.OwnedBy(configMap, m.ref()):
		wrong = name + " is not the task's"
	default:
		if live, err = task.Of(configMap, job); err != nil {
			wrong = err.Error()
		}
	}
	switch {
	case wrong == "":
		diags.Append(m.readTask(ctx, live, imported)...)
		m.Logs = types.StringValue(logsCommand(job.Namespace, job.Name, live.NumNodes))
	case imported:
		diags.AddError(fmt.Sprintf("Job %s/%s is not a task", job.Namespace, job.Name),
			wrong+". This provider creates every task with one. Other Jobs cannot be imported.")
	case err != nil && apierrors.IsNotFound(err): // readParts reports it, unless the task has ended and does not need it
	default: // an error would keep the user from replacing or destroying it
		diags.AddWarning(fmt.Sprintf("Invalid ConfigMap of task %s/%s", job.Namespace, job.Name),
			wrong+". The ConfigMap contains the commands that the pods need to restart. Replace the task: terraform apply -replace=ADDRESS.")
	}
	m.observe(progress)
	m.defaults()
	return diags
}

// Update changes the Job, as far as Kubernetes and Kueue let a Job change, and the metadata of every object.
func (r *taskResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	r.connection.applies()
	ctx, addWarnings := collectWarnings(ctx, &resp.Diagnostics)
	defer addWarnings()
	var model, prior taskModel
	resp.Diagnostics.Append(model.load(ctx, req.Plan.Raw)...)
	resp.Diagnostics.Append(prior.load(ctx, req.State.Raw)...)
	before, diags := prior.spec(ctx)
	resp.Diagnostics.Append(diags...)
	after, diags := model.spec(ctx)
	resp.Diagnostics.Append(diags...)
	client, ctx, cancel := r.begin(ctx, &resp.Diagnostics, model.Timeouts.Update)
	defer cancel()
	if client == nil {
		return
	}

	c := newTaskCluster(client, model.subject())
	if prior.lacks() || prior.isChanged() {
		var secrets types.Map
		resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("secrets_wo"), &secrets)...)
		values, diags := stringMap(ctx, secrets)
		resp.Diagnostics.Append(diags...)
		if !resp.Diagnostics.HasError() {
			resp.Diagnostics.Append(c.repair(ctx, &prior.jobModel, after.complete(r.version), model.parts(after), values)...)
		}
		if resp.Diagnostics.HasError() {
			return
		}
	}
	resp.Diagnostics.Append(c.update(ctx, model.ref(), prior.parts(before), before.Task, after.Task, attributeOrFile(req.Config.Raw), func(job *batchv1.Job) error {
		return checkTask(ctx, client, req, job)
	})...)
	if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(c.changePrefix(ctx, model.ref(), prior.GenerateName, model.GenerateName)...)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	if model.Phase.IsUnknown() { // the plan shows that this update waits
		model.taskObservedModel = prior.taskObservedModel
		resp.Diagnostics.Append(model.store(ctx, &resp.State.Raw)...)
		resp.Diagnostics.Append(c.wait(ctx, &model)...)
	}
	resp.Diagnostics.Append(model.store(ctx, &resp.State.Raw)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, model.identity())...)
}

// Delete removes the Job, waits until none of its pods is left, and removes the rest.
func (r *taskResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var model taskModel
	r.delete(ctx, req, resp, &model, &model.jobModel, func(ctx context.Context, client *cluster.Client) diag.Diagnostics {
		return newTaskCluster(client, model.subject()).delete(ctx, model.ref(), model.liveParts(ctx))
	})
}

// liveParts are the names of the task's objects besides the Job, as the state has it.
func (m *taskModel) liveParts(ctx context.Context) []task.Object {
	a, diags := m.spec(ctx)
	if diags.HasError() { // an earlier release took this; nothing but the number of nodes matters here
		a.Task = task.Task{Name: m.Name.ValueString(), Namespace: m.Namespace.ValueString(), NumNodes: 2}
	}
	return m.parts(a)
}

// parts are the names of the task's objects besides the Job.
func (m *taskModel) parts(a taskSpec) []task.Object {
	t := a.Task
	if !m.defined["secrets_wo_version"].IsNull() {
		t.SecretValues = []string{"any"} // which ones is not known, and does not matter for the Secret's name
	}
	return task.NamedParts(t)
}
