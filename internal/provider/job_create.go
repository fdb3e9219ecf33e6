package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster/jobparts"
)

// classUse is an attribute that names a PriorityClass; the name may be "".
type classUse struct {
	at   path.Path
	name string
}

// checkPriorityClasses refuses a class that does not exist before anything is created: the API server would accept the
// Job, and then reject each of its pods. It checks nothing if the account may not read classes.
func (c *jobCluster) checkPriorityClasses(ctx context.Context, uses ...classUse) diag.Diagnostics {
	var diags diag.Diagnostics
	exists := map[string]bool{"": true}
	for _, use := range uses {
		if _, known := exists[use.name]; !known {
			_, err := cluster.Get(ctx, c.client, c.client.Kubernetes().SchedulingV1().PriorityClasses(), use.name)
			if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
				c.subject.explain(&diags, err)
				return diags
			}
			exists[use.name] = !apierrors.IsNotFound(err)
		}
		if !exists[use.name] {
			diags.AddAttributeError(use.at, "PriorityClass not found", fmt.Sprintf(
				"PriorityClass %q does not exist, and Kubernetes would reject every pod that uses it. "+
					"If this configuration creates the class, refer to it, so that it is created first: elastic_priority_class.NAME.name instead of %q.", use.name, use.name))
		}
	}
	return diags
}

// checkWorkloadPriorityClass refuses a class that does not exist, at the attribute that names it. It checks nothing
// without a name, or if the account may not read classes.
func (c *jobCluster) checkWorkloadPriorityClass(ctx context.Context, at path.Path, name string) diag.Diagnostics {
	var diags diag.Diagnostics
	if name == "" {
		return diags
	}
	_, err := cluster.Get(ctx, c.client, c.client.Kueue().WorkloadPriorityClasses(), name)
	switch {
	case apierrors.IsNotFound(err):
		diags.AddAttributeError(at, "WorkloadPriorityClass not found", fmt.Sprintf(
			"WorkloadPriorityClass %q does not exist, and Kueue would never admit a workload that uses it. "+
				"If this configuration creates the class, refer to it, so that it is created first: elastic_workload_priority_class.NAME.name instead of %q.", name, name))
	case err != nil && !apierrors.IsForbidden(err):
		c.subject.explain(&diags, err)
	}
	return diags
}

// checkLocalQueue refuses a queue on a cluster without Kueue, with the effect on the job, in sentences. It warns about
// a queue that does not exist. It checks nothing if the account may not read queues.
func (c *jobCluster) checkLocalQueue(ctx context.Context, at path.Path, namespace, name, withoutKueue string) diag.Diagnostics {
	var diags diag.Diagnostics
	_, err := cluster.Get(ctx, c.client, c.client.Kueue().LocalQueues(namespace), name)
	switch {
	case cluster.IsNotServed(err):
		diags.AddAttributeError(at, "Kueue is not installed", fmt.Sprintf("The API server does not serve LocalQueues%s Install Kueue (API version %s), or remove queue.",
			withoutKueue, kueue.SchemeGroupVersion))
	case apierrors.IsNotFound(err):
		diags.AddAttributeWarning(at, "LocalQueue not found", fmt.Sprintf(
			"LocalQueue %s/%s does not exist; the %s waits until it does. If this configuration creates the queue, refer to it, so that it is created first: elastic_local_queue.NAME.name instead of %q.",
			namespace, name, c.word, name))
	case err != nil && !apierrors.IsForbidden(err):
		c.subject.explain(&diags, err)
	}
	return diags
}

// createJob makes the suspended Job that will own all the rest. The prefix of its name, if any, stays with it, so that
// an import finds it.
func (c *jobCluster) createJob(ctx context.Context, job *batchv1.Job, generateName types.String) (*batchv1.Job, error) {
	job.GenerateName = generateName.ValueString()
	return cluster.Create(ctx, c.client, c.client.Kubernetes().BatchV1().Jobs(job.Namespace), job)
}

// createParts makes what a suspended Job owns, and calls before ahead of each.
func (c *jobCluster) createParts(
	ctx context.Context, job trainingjob.JobRef, parts []trainingjob.Object, before func(trainingjob.Object) error,
) diag.Diagnostics {
	var diags diag.Diagnostics
	for i, part := range parts {
		err := before(part)
		if err == nil {
			err = jobparts.Create(ctx, c.client, part, job)
		}
		if err != nil {
			c.explainPart(&diags, part, err)
			diags.AddWarning(fmt.Sprintf("The %s is incomplete and cannot start", c.word), fmt.Sprintf(
				"Job %s/%s, which is suspended, and %d of its %d other objects exist. All are in the state: "+
					"the next terraform apply deletes and recreates them, and terraform destroy deletes them.", job.Namespace, job.Name, i, len(parts)))
			return diags
		}
	}
	return diags
}

// start lets a suspended Job run.
func (c *jobCluster) start(ctx context.Context, job trainingjob.JobRef) diag.Diagnostics {
	var diags diag.Diagnostics
	if err := jobparts.Resume(ctx, c.client, job); err != nil {
		c.subject.explain(&diags, err)
	}
	return diags
}

// explainPart adds the remedy to two errors: another object has the name of a part, which users should not import as a
// job, or the account may not grant permissions that it does not have.
func (c *jobCluster) explainPart(diags *diag.Diagnostics, part trainingjob.Object, err error) {
	summary, detail := cluster.Explain(err)
	var exists *cluster.AlreadyExistsError
	if errors.As(err, &exists) {
		diags.AddError(summary, fmt.Sprintf("%s %s needs an object with this name, but the name is used by an object of another client (%s). "+
			"Choose another name for the job, or delete that object first.", c.noun, c.subject.importID, strings.Join(exists.Managers, ", ")))
		return
	}
	switch part.(type) {
	case *corev1.ServiceAccount, *rbacv1.Role, *rbacv1.RoleBinding:
		if apierrors.IsForbidden(err) {
			diags.AddAttributeError(path.Root("service_account_name"), summary, detail+
				"\n\n"+c.account+". To create that Role, your account needs all of its permissions. "+
				"Grant them, or set service_account_name to an existing account; then no RBAC objects are created.")
			return
		}
	}
	c.subject.explain(diags, err)
}
