package provider

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
)

// Default timeouts. Create and update include the wait; delete includes the pods' grace periods.
const (
	jobTimeout     = 10 * time.Minute
	jobReadTimeout = 2 * time.Minute
)

// jobModel holds the attributes of a training job or a task that are not of its definition alone.
type jobModel struct {
	Name         types.String `tfsdk:"name"`
	GenerateName types.String `tfsdk:"generate_name"`
	Namespace    types.String `tfsdk:"namespace"`
	Labels       types.Map    `tfsdk:"labels"`
	Annotations  types.Map    `tfsdk:"annotations"`

	WaitFor     types.String   `tfsdk:"wait_for"`
	FailOnError types.Bool     `tfsdk:"fail_on_error"`
	OnFinished  types.String   `tfsdk:"on_finished"`
	Timeouts    timeouts.Value `tfsdk:"timeouts"`

	UID            types.String `tfsdk:"uid"`
	MissingObjects types.List   `tfsdk:"missing_objects"`
	ChangedFields  types.List   `tfsdk:"changed_fields"`
}

// defined are the attributes of a job that its definition has, by their names.
type defined map[string]attr.Value

func (d defined) text(attribute string) types.String { return valueIn[types.String](d, attribute) }

// at is the value of an attribute, or of one in it: "workers.min"; null where it is in nothing.
func (d defined) at(attribute string) attr.Value {
	name, inner, isInner := strings.Cut(attribute, ".")
	value := d[name]
	if isInner {
		object, _ := value.(types.Object)
		value = object.Attributes()[inner]
	}
	if value == nil {
		return types.DynamicNull()
	}
	return value
}

// valueIn is the value of an attribute, of its type in the schema; null where it is in nothing.
func valueIn[T attr.Value](d defined, attribute string) T {
	value, _ := d.at(attribute).(T)
	return value
}

// load reads a value of the resource: the attributes that model has a field for into model; it returns the others.
func load(ctx context.Context, of schema.Schema, raw tftypes.Value, model any) (defined, diag.Diagnostics) {
	var diags diag.Diagnostics
	kinds, values, given := map[string]attr.Type{}, map[string]attr.Value{}, attributesIn(raw)
	others, fields := defined{}, namesIn(reflect.TypeOf(model).Elem(), "tfsdk")
	for _, name := range slices.Sorted(maps.Keys(of.Attributes)) {
		kind := of.Attributes[name].GetType()
		if number, ok := kind.(interface {
			Validate(context.Context, tftypes.Value, path.Path) diag.Diagnostics
		}); ok {
			diags.Append(number.Validate(ctx, given[name], path.Root(name))...)
		}
		value, err := kind.ValueFromTerraform(ctx, given[name])
		switch {
		case err != nil:
			diags.AddAttributeError(path.Root(name), "Invalid attribute value", err.Error())
		case fields[name] == nil:
			others[name] = value
		default:
			kinds[name], values[name] = kind, value
		}
	}
	object, more := types.ObjectValue(kinds, values)
	diags.Append(more...)
	return others, append(diags, object.As(ctx, model, basetypes.ObjectAsOptions{})...)
}

// store is the inverse of load.
func store(ctx context.Context, of schema.Schema, model any, others defined) (tftypes.Value, diag.Diagnostics) {
	kinds := map[string]attr.Type{}
	for name := range namesIn(reflect.TypeOf(model).Elem(), "tfsdk") {
		kinds[name] = of.Attributes[name].GetType()
	}
	object, diags := types.ObjectValueFrom(ctx, kinds, model)
	values := object.Attributes()
	maps.Copy(values, others)
	all, more := types.ObjectValue(attributesOf(of.Type()), values)
	diags.Append(more...)
	raw, err := all.ToTerraformValue(ctx)
	if err != nil {
		diags.AddError("Invalid attribute value", err.Error())
	}
	return raw, diags
}

// made notes that the Job was created: nothing is missing, and nothing has changed.
func (m *jobModel) made(job *batchv1.Job) {
	m.UID = types.StringValue(string(job.UID))
	m.setMissing(nil)
	m.setChanged(nil)
}

func (m *jobModel) identity() namespacedIdentity {
	return namespacedIdentity{Namespace: m.Namespace, Name: m.Name}
}

func (m *jobModel) ref() trainingjob.JobRef {
	return trainingjob.JobRef{Name: m.Name.ValueString(), Namespace: m.Namespace.ValueString(), UID: apitypes.UID(m.UID.ValueString())}
}

func (m *jobModel) subjectOf(resource string) subject {
	return subject{resourceType: TypeName + "_" + resource, importID: m.Namespace.ValueString() + "/" + m.Name.ValueString()}
}

// liveJob is the Job of a state; nil if it does not exist or cannot be read, in which case the response has the reason.
// It always sets the identity: Terraform before 1.12 keeps none, and the framework requires one.
func (m *jobModel) liveJob(ctx context.Context, client *cluster.Client, about subject, finished bool, resp *resource.ReadResponse) *batchv1.Job {
	resp.Diagnostics.Append(resp.Identity.Set(ctx, m.identity())...)
	ref := m.ref()
	job, err := cluster.Get(ctx, client, client.Kubernetes().BatchV1().Jobs(ref.Namespace), ref.Name)
	switch {
	case apierrors.IsNotFound(err) || err == nil && ref.UID != "" && job.UID != ref.UID:
		// A Job with another UID is another job. One that had finished was removed by a TTL, and its end stays known.
		if !finished || err == nil || m.OnFinished.ValueString() != onFinishedKeep {
			resp.State.RemoveResource(ctx)
		}
		return nil
	case err != nil:
		about.explain(&resp.Diagnostics, err)
		return nil
	}
	return job
}

// readMetadata copies the prefix of the Job's name, and the labels and annotations of the user: those that are not
// reserved.
func (m *jobModel) readMetadata(client *cluster.Client, job *batchv1.Job, reserved func(key string) bool) diag.Diagnostics {
	var diags, more diag.Diagnostics
	m.GenerateName = textOrNull(job.GenerateName)
	users := &metav1.ObjectMeta{Labels: maps.Clone(job.Labels), Annotations: maps.Clone(job.Annotations), ManagedFields: job.ManagedFields}
	for _, entries := range []map[string]string{users.Labels, users.Annotations} {
		maps.DeleteFunc(entries, func(key, _ string) bool { return reserved(key) })
	}
	m.Labels, more = ownedEntries(client, users, "labels", m.Labels)
	diags.Append(more...)
	m.Annotations, more = ownedEntries(client, users, "annotations", m.Annotations)
	diags.Append(more...)
	return diags
}

// takeMetadata sets the labels and annotations of a state that was applied. A label is in several objects: when others
// have changed it in the Job and in another object to the same value, that value would otherwise be expected in both.
func (m *jobModel) takeMetadata(applied jobModel) {
	if !applied.UID.IsNull() { // not an import
		m.Labels, m.Annotations = applied.Labels, applied.Annotations
	}
}

// defaults are for an imported job: what the cluster does not hold is as if it were not configured.
func (m *jobModel) defaults() {
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
