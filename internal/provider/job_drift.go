package provider

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/task"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/provider/drift"
)

// jobDrift is the parameters of drift detection for a kind of jobs.
type jobDrift struct {
	schema schema.Schema
	// attributesOf are the attributes that a field of the Job or of its ConfigMap means.
	attributesOf func(field string) []path.Path
}

// isOfCluster reports whether an attribute is something that the cluster holds and the configuration sets.
func (d jobDrift) isOfCluster(attribute string) bool {
	switch attribute {
	case "yaml", "secrets_wo", "secrets_wo_version", "wait_for", "fail_on_error", "on_finished", "master_priority_check", "timeouts":
		return false
	default:
		a, ok := d.schema.Attributes[attribute]
		return ok && (a.IsOptional() || a.IsRequired())
	}
}

func trainingJobDrift(ctx context.Context) jobDrift {
	d := jobDrift{schema: trainingJobSchema(ctx)}
	ofKey := map[string][]path.Path{
		trainingjob.ModelKey: {path.Root("model")},
		trainingjob.JobKey: {
			path.Root("model"), path.Root("data"), path.Root("training"), path.Root("output"), path.Root("checkpoint"), path.Root("evaluation"),
			path.Root("workers").AtName("command"),
		},
		trainingjob.WorkersKey: {path.Root("workers"), path.Root("queue"), path.Root("topology")},
	}
	// definition.json has all that the other keys have not, and the settings of the workers besides.
	elsewhere := map[string]bool{"labels": true, "annotations": true, "queue": true, "topology": true, "active_deadline_seconds": true}
	for _, at := range ofKey[trainingjob.JobKey] {
		if len(at.Steps()) == 1 {
			elsewhere[at.String()] = true
		}
	}
	for name := range d.schema.Attributes {
		if d.isOfCluster(name) && !elsewhere[name] {
			ofKey[trainingjob.DefinitionKey] = append(ofKey[trainingjob.DefinitionKey], path.Root(name))
		}
	}
	d.attributesOf = func(field string) []path.Path {
		if field == ".spec.activeDeadlineSeconds" {
			return []path.Path{path.Root("active_deadline_seconds")}
		}
		if key, ok := strings.CutPrefix(field, ".data."); ok {
			return ofKey[key]
		}
		if at, ok := metadataAttribute(field); ok {
			return []path.Path{at}
		}
		return nil
	}
	return d
}

func taskDrift(ctx context.Context) jobDrift {
	fields := map[string]path.Path{
		".spec.backoffLimit":                          path.Root("recovery"),
		".spec.ttlSecondsAfterFinished":               path.Root("ttl_seconds_after_finished"),
		".spec.activeDeadlineSeconds":                 path.Root("active_deadline_seconds"),
		".metadata.labels." + task.LabelQueue:         path.Root("queue").AtName("name"),
		".metadata.labels." + task.LabelPriorityClass: path.Root("queue").AtName("workload_priority_class"),
	}
	return jobDrift{schema: taskSchema(ctx), attributesOf: func(field string) []path.Path {
		if at, ok := fields[field]; ok {
			return []path.Path{at}
		}
		if at, ok := metadataAttribute(field); ok {
			return []path.Path{at}
		}
		return nil
	}}
}

// observation is the last writer of each attribute of a job. It includes the ConfigMap with the definition, if given.
func (d jobDrift) observation(client *cluster.Client, state values, job *batchv1.Job, configMap *corev1.ConfigMap) (drift.Observation, error) {
	o, err := observationOf(client, job, state, d.attributesOf)
	if err != nil || configMap == nil {
		return o, err
	}
	of, err := observationOf(client, configMap, state, func(field string) []path.Path {
		if !strings.HasPrefix(field, ".data.") {
			return nil // its metadata are the Job's, where they are read
		}
		return d.attributesOf(field)
	})
	o.Writers = append(o.Writers, of.Writers...)
	return o, err
}

// observe keeps the observations of a refresh for the following plan: of the Job, and of the ConfigMap of that name if
// others can change it. more are the writers of fields without an attribute.
func (d jobDrift) observe(
	ctx context.Context, client *cluster.Client, req resource.ReadRequest, resp *resource.ReadResponse, job *batchv1.Job, configMapName string, more []drift.Writer,
) {
	if resp.Private == nil {
		return // a search for jobs keeps nothing
	}
	before, state := valuesOf(req.State.Raw), valuesOf(resp.State.Raw)
	var changes []drift.Change
	if before.text("uid") == state.text("uid") { // not of an import
		changes = drift.Changes(before, state, d.isOfCluster)
	}
	var configMap *corev1.ConfigMap
	if configMapName != "" {
		found, err := cluster.Get(ctx, client, client.Kubernetes().CoreV1().ConfigMaps(job.Namespace), configMapName)
		if err == nil { // otherwise the refresh itself reports that it is missing, or may not be read
			configMap = found
		}
	}
	observed, err := d.observation(client, state, job, configMap)
	if err != nil {
		resp.Diagnostics.Append(cannotTellWriters(err))
		return
	}
	observed.Writers = append(observed.Writers, more...)
	resp.Diagnostics.Append(keepObservation(ctx, resp.Private, observed.Observed(changes, observationIn(ctx, resp.Private)))...)
}

// warn names the planned changes that set back what others have written.
func (d jobDrift) warn(ctx context.Context, of string, req resource.ModifyPlanRequest, diags *diag.Diagnostics) {
	state, plan := valuesOf(req.State.Raw), valuesOf(req.Plan.Raw)
	warnOfDrift(diags, of, drift.Changes(state, plan, d.isOfCluster), observationIn(ctx, req.Private), valuesOf(req.Config.Raw),
		func(drift.Change) string { return "" })
}

// check refuses an update that would overwrite what others have changed since its plan was made. read is a value of the
// resource as a refresh would leave it.
func (d jobDrift) check(
	ctx context.Context, client *cluster.Client, req resource.UpdateRequest, job *batchv1.Job, configMap *corev1.ConfigMap,
	read func(from tftypes.Value) (values, diag.Diagnostics),
) error {
	if client.ForcesConflicts() {
		return nil
	}
	state := valuesOf(req.State.Raw)
	live, diags := read(req.State.Raw)
	asDesired, more := read(req.Plan.Raw)
	if diags.Append(more...); diags.HasError() {
		return &unreadableJobError{diags: diags}
	}
	now, err := d.observation(client, state, job, configMap)
	if err != nil {
		return err
	}
	found := drift.Conflicts(drift.Comparison{
		Planned: state, Desired: valuesOf(req.Plan.Raw), Live: live, LiveAsDesired: asDesired, Config: valuesOf(req.Config.Raw),
		Before: observationIn(ctx, req.Private), Now: now, Compared: d.isOfCluster,
	})
	if len(found) == 0 {
		return nil
	}
	return &drift.ConflictError{Ref: cluster.Ref{Kind: "Job", Namespace: job.Namespace, Name: job.Name}, Conflicts: found}
}

// unreadableJobError is the reason why a job's objects cannot be compared with a plan.
type unreadableJobError struct{ diags diag.Diagnostics }

func (e *unreadableJobError) Error() string {
	return "what the job was made of cannot be read: " + e.diags.Errors()[0].Detail()
}

// jobPatchAttempts bounds how often the patch of a Job is repeated after a conflict with another writer.
const jobPatchAttempts = 10

// jobPatch is the change of a Job; null removes a field.
type jobPatch struct{ labels, annotations, spec map[string]any }

// of is the merge patch for this version of the Job. It omits parts without a change, because null would remove them.
func (p jobPatch) of(job *batchv1.Job) map[string]any {
	metadata := map[string]any{"uid": job.UID, "resourceVersion": job.ResourceVersion}
	merge := map[string]any{"metadata": metadata}
	if len(p.labels) > 0 {
		metadata["labels"] = p.labels
	}
	if len(p.annotations) > 0 {
		metadata["annotations"] = p.annotations
	}
	if len(p.spec) > 0 {
		merge["spec"] = p.spec
	}
	return merge
}

// patchJob changes a Job as far as there is something to change, in the very version that check has seen: a change in
// between is looked at again.
func (c *jobCluster) patchJob(ctx context.Context, ref trainingjob.JobRef, changes jobPatch, check func(*batchv1.Job) error) error {
	jobs := c.client.Kubernetes().BatchV1().Jobs(ref.Namespace)
	about := cluster.Ref{Kind: "Job", Namespace: ref.Namespace, Name: ref.Name}
	for attempt := 1; ; attempt++ {
		job, err := cluster.Get(ctx, c.client, jobs, ref.Name)
		if err != nil {
			return err
		}
		if job.UID != ref.UID {
			return c.client.Wrap("update", about, &cluster.RecreatedError{Expected: ref.UID, Got: job.UID})
		}
		if err := check(job); err != nil {
			return c.client.Wrap("update", about, err)
		}
		if len(changes.labels)+len(changes.annotations)+len(changes.spec) == 0 {
			return nil
		}
		err = cluster.Merge(ctx, c.client, jobs, ref.Name, changes.of(job))
		if err == nil || attempt == jobPatchAttempts || !apierrors.IsConflict(err) {
			return err
		}
	}
}
