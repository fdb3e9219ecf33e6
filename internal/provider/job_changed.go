package provider

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster/jobparts"
	"github.com/elastic-training/terraform-provider-elastic/internal/provider/drift"
)

// changedFieldsAttribute is empty in every plan, as missing_objects is.
func changedFieldsAttribute(word string) schema.Attribute {
	return emptyInPlans(fmt.Sprintf("Fields that other clients have changed in the objects of an unfinished %s, and that no attribute sets, such as `Job default/low: spec.parallelism`. "+
		"The plan names the client, and apply restores them. Then the list is empty.", word))
}

// changedField names a field of an object in changed_fields.
func changedField(object metav1.Object, field cluster.Overwritten) string {
	return fmt.Sprintf("%s: %s", jobparts.Ref(object), field.Field())
}

// setChanged notes the fields that others have changed, and returns the writers.
func (m *jobModel) setChanged(changed []changedObject) []drift.Writer {
	fields, writers := []attr.Value{}, []drift.Writer(nil)
	for _, object := range changed {
		for _, field := range object.fields {
			name := changedField(object.Object, field)
			fields = append(fields, types.StringValue(name))
			writers = append(writers, drift.Writer{Attribute: name, Manager: field.Manager, Time: field.Time})
		}
	}
	m.ChangedFields = types.ListValueMust(types.StringType, fields)
	return writers
}

// wasChanged reports whether the field was among those that others had changed when the state was read.
func (m *jobModel) wasChanged(name string) bool {
	return slices.ContainsFunc(m.ChangedFields.Elements(), func(v attr.Value) bool { return v.Equal(types.StringValue(name)) })
}

// isChanged reports whether others had changed anything of that kind.
func (m *jobModel) isChanged() bool { return len(m.ChangedFields.Elements()) > 0 }

// hasChanged reports whether others had changed an object of a kind.
func (m *jobModel) hasChanged(kind string) bool {
	return slices.ContainsFunc(m.ChangedFields.Elements(), func(v attr.Value) bool {
		text, _ := v.(types.String)
		return strings.HasPrefix(text.ValueString(), kind+" ")
	})
}

// warnChanged names the fields that an apply sets back, and their writers.
func (m *jobModel) warnChanged(what string, writers []drift.Writer) diag.Diagnostics {
	var diags diag.Diagnostics
	var b strings.Builder
	for _, element := range m.ChangedFields.Elements() {
		text, _ := element.(types.String)
		by := "removed, or written by a client that managedFields do not name"
		if i := slices.IndexFunc(writers, func(w drift.Writer) bool { return w.Attribute == text.ValueString() }); i >= 0 && writers[i].Manager != "" {
			by = writers[i].String()
		}
		fmt.Fprintf(&b, "  - %s, %s\n", text.ValueString(), by)
	}
	if b.Len() > 0 {
		diags.AddWarning(what+": its objects were changed outside of this configuration", "No attribute sets these fields:\n\n"+b.String()+
			"\nApplying this plan restores the values with which the provider created them.")
	}
	return diags
}

// changedObject is one of a job's objects with the fields that others have changed.
type changedObject struct {
	trainingjob.Object // as it should be
	fields             []cluster.Overwritten
}

// ofAttributes reports whether changed_fields does not cover a field of one of a job's objects: an attribute sets it,
// the job's pods or Kueue write it, or it is immutable for this Job.
func (k jobKind) ofAttributes(job *batchv1.Job, object trainingjob.Object, field cluster.Overwritten) bool {
	kind, path := jobparts.Ref(object).Kind, strings.Join(field.Path, ".")
	switch field.Path[0] {
	case "kind", "apiVersion", "status":
		return true
	case "metadata":
		entry := len(field.Path) == 3 && (field.Path[1] == "labels" || field.Path[1] == "annotations")
		if !entry || kind == "Job" && object.GetName() == job.Name && (field.Path[1] == "annotations" || !k.reserved(field.Path[2])) {
			return true
		}
		return strings.HasPrefix(field.Path[2], queueLabels)
	}
	switch kind {
	case "ConfigMap":
		return path != "immutable" // the writers of attributes' data are known, and pods write the rest
	case "Lease":
		return true
	case "Job":
		suspended := job.Spec.Suspend != nil && *job.Spec.Suspend && object.GetName() == job.Name
		template := field.Path[0] == "spec" && len(field.Path) > 1 && field.Path[1] == "template"
		return slices.Contains(k.fields, path) || path == "spec.suspend" ||
			template && (!suspended || field.Manager == "" || strings.Contains(field.Manager, "kueue"))
	}
	return false
}

const queueLabels = "kueue.x-k8s.io/"

// changedIn finds the changes by others in a live object. Metadata suffices if managedFields name no other writer;
// otherwise get reads the rest.
func (c *jobCluster) changedIn(ctx context.Context, job *batchv1.Job, desired trainingjob.Object, found metav1.Object) ([]cluster.Overwritten, error) {
	taken, err := cluster.Taken(c.client, found, desired)
	if err != nil {
		return nil, err
	}
	taken = slices.DeleteFunc(taken, func(field cluster.Overwritten) bool { return c.ofAttributes(job, desired, field) })
	if len(taken) == 0 {
		return nil, nil
	}
	live, whole := found.(trainingjob.Object)
	if _, partial := found.(*metav1.PartialObjectMetadata); partial || !whole {
		got, err := jobparts.Of(c.client, desired).Get(ctx)
		if err != nil {
			return nil, err
		}
		live, _ = got.(trainingjob.Object) // every object of a job is one
	}
	return cluster.WithOtherValues(live, taken)
}

// changed finds what others have changed in the objects that are there. Which may not be read is not looked at.
func (c *jobCluster) changed(
	ctx context.Context, job *batchv1.Job, desired []trainingjob.Object, found map[cluster.Ref]metav1.Object,
) ([]changedObject, diag.Diagnostics) {
	var diags diag.Diagnostics
	var all []changedObject
	for _, object := range desired {
		live, there := found[jobparts.Ref(object)]
		if !there {
			continue
		}
		fields, err := c.changedIn(ctx, job, object, live)
		switch {
		case apierrors.IsNotFound(err) || apierrors.IsForbidden(err):
			tflog.Debug(ctx, "what others have changed in an object of the job is not known", map[string]any{"object": jobparts.Ref(object).String(), "error": err.Error()})
		case err != nil:
			c.subject.explain(&diags, err)
			return nil, diags
		case len(fields) > 0:
			all = append(all, changedObject{object, fields})
		}
	}
	return all, diags
}

// restore sets back what others have changed in the job's objects and the plan has shown.
func (c *jobCluster) restore(ctx context.Context, m *jobModel, job *batchv1.Job, desired []trainingjob.Object) diag.Diagnostics {
	var diags diag.Diagnostics
	for _, object := range desired {
		if !slices.ContainsFunc(m.ChangedFields.Elements(), func(v attr.Value) bool {
			text, _ := v.(types.String)
			return strings.HasPrefix(text.ValueString(), jobparts.Ref(object).String()+": ")
		}) {
			continue
		}
		live, err := jobparts.Of(c.client, object).Get(ctx)
		var fields []cluster.Overwritten
		if err == nil {
			fields, err = c.changedIn(ctx, job, object, live)
		}
		fields = slices.DeleteFunc(fields, func(field cluster.Overwritten) bool { return !m.wasChanged(changedField(object, field)) })
		if err == nil && len(fields) > 0 {
			err = jobparts.Of(c.client, object).Patch(ctx, cluster.Restoring(fields))
		}
		if err != nil && !apierrors.IsNotFound(err) {
			c.explainPart(&diags, object, err)
			return diags
		}
	}
	return diags
}
