package provider

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/listdefault"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster/jobparts"
	"github.com/elastic-training/terraform-provider-elastic/internal/provider/drift"
)

// missingObjectsAttribute is empty in every plan, so that an object that is missing is a difference, which an update
// removes. The word is "job" or "task".
func missingObjectsAttribute(word string) schema.Attribute {
	return emptyInPlans(fmt.Sprintf("Objects of an unfinished %[1]s that were deleted, such as `ConfigMap default/low-%[1]s`. "+
		"The plan shows what fails without them, and apply creates them again. Then the list is empty.", word))
}

func emptyInPlans(description string) schema.Attribute {
	return schema.ListAttribute{
		MarkdownDescription: description,
		ElementType:         types.StringType,
		Computed:            true,
		Default:             listdefault.StaticValue(types.ListValueMust(types.StringType, []attr.Value{})),
	}
}

// setMissing notes the objects that are missing.
func (m *jobModel) setMissing(parts []trainingjob.Object) {
	names := make([]attr.Value, 0, len(parts))
	for _, part := range parts {
		names = append(names, types.StringValue(jobparts.Ref(part).String()))
	}
	m.MissingObjects = types.ListValueMust(types.StringType, names)
}

// lacks reports whether objects were missing when the state was read.
func (m *jobModel) lacks() bool { return len(m.MissingObjects.Elements()) > 0 }

// warnMissing reports, for each object that was missing when the state was read, what fails without it, and what an
// apply does.
func (m *jobModel) warnMissing(what string, parts []trainingjob.Object, lossOf func(job string, part trainingjob.Object) trainingjob.Loss) diag.Diagnostics {
	var diags diag.Diagnostics
	var lines []string
	for _, part := range parts {
		name := jobparts.Ref(part).String()
		if slices.ContainsFunc(m.MissingObjects.Elements(), func(v attr.Value) bool { return v.Equal(types.StringValue(name)) }) {
			loss := lossOf(m.Name.ValueString(), part)
			lines = append(lines, fmt.Sprintf("%s was deleted. Without it %s. terraform apply %s.", name, loss.Without, loss.Repair))
		}
	}
	if len(lines) > 0 {
		diags.AddWarning(what+" is missing objects", strings.Join(lines, "\n\n"))
	}
	return diags
}

// missingParts are those of a job's parts that are not there, or belong to an earlier job of its name and are about to
// go. Of a part that is being deleted it warns: it serves the job until it is gone. Which part may not be read is not
// looked for. The metadata of those that are there are found.
func (c *jobCluster) missingParts(
	ctx context.Context, ref trainingjob.JobRef, parts []trainingjob.Object,
) (missing []trainingjob.Object, there map[cluster.Ref]metav1.Object, diags diag.Diagnostics) {
	found, errs := make([]metav1.Object, len(parts)), make([]error, len(parts))
	var requests sync.WaitGroup
	for i, part := range parts {
		requests.Go(func() { found[i], errs[i] = jobparts.Of(c.client, part).Metadata(ctx) })
	}
	requests.Wait()
	there = map[cluster.Ref]metav1.Object{}
	for i, part := range parts {
		switch {
		case apierrors.IsNotFound(errs[i]) || errs[i] == nil && jobparts.IsLeftover(found[i], ref):
			missing = append(missing, part)
		case apierrors.IsForbidden(errs[i]):
			tflog.Debug(ctx, "whether an object of the job is there is not known: it may not be read", map[string]any{"object": jobparts.Ref(part).String()})
		case errs[i] != nil:
			c.subject.explain(&diags, errs[i])
			return nil, nil, diags
		default:
			there[jobparts.Ref(part)] = found[i]
			if terminating := cluster.TerminatingOf(jobparts.Ref(part), found[i]); terminating != nil {
				diags.AddWarning(jobparts.Ref(part).String()+" is being deleted", fmt.Sprintf("%s %s needs it. %s %s\n\n"+
					"A deletion cannot be undone. Without it %s; a plan after the deletion creates it again.",
					c.noun, c.subject.importID, terminating, terminating.Remedy(), c.lossOf(ref.Name, part).Without))
			}
		}
	}
	return missing, there, diags
}

// readParts notes the objects that a job lacks which has not ended and is not being deleted, and the changes by others
// in its objects. It returns the writers. desired are the objects with which the job was created.
func (c *jobCluster) readParts(
	ctx context.Context, m *jobModel, job *batchv1.Job, finished bool, parts []trainingjob.Object, desired func() ([]trainingjob.Object, error),
) ([]drift.Writer, diag.Diagnostics) {
	m.setMissing(nil)
	m.setChanged(nil)
	if finished || job.DeletionTimestamp != nil {
		return nil, nil
	}
	missing, there, diags := c.missingParts(ctx, refOfJob(job), parts)
	m.setMissing(missing)
	if diags.HasError() {
		return nil, diags
	}
	objects, err := desired()
	if err != nil { // the state is of a version that this release refuses, which the refresh has reported
		tflog.Debug(ctx, "what others have changed in the job's objects is not known", map[string]any{"error": err.Error()})
		return nil, diags
	}
	there[jobparts.Ref(job)] = job
	changed, more := c.changed(ctx, job, objects, there)
	diags.Append(more...)
	return m.setChanged(changed), diags
}

// createMissing creates those of the objects that are missing.
func (c *jobCluster) createMissing(
	ctx context.Context, ref trainingjob.JobRef, objects, missing []trainingjob.Object,
	before func(trainingjob.Object) error,
) diag.Diagnostics {
	var diags diag.Diagnostics
	for _, object := range objects {
		if !isAmong(missing, object) {
			continue
		}
		err := before(object)
		if err == nil {
			err = jobparts.Create(ctx, c.client, object, ref)
		}
		if err != nil {
			c.explainPart(&diags, object, err)
			return diags
		}
	}
	return diags
}

func isAmong(parts []trainingjob.Object, object trainingjob.Object) bool {
	return slices.ContainsFunc(parts, func(part trainingjob.Object) bool { return jobparts.Ref(part) == jobparts.Ref(object) })
}

// isSecret reports whether a part is a Secret, whose values the state does not have.
func isSecret(part trainingjob.Object) bool {
	_, is := part.(*corev1.Secret)
	return is
}
