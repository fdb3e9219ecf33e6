package provider

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainingjob"
)

// classUse is an attribute that names a PriorityClass; the name may be "".
type classUse struct {
	at   path.Path
	name string
}

// classesOf are the uses of a training job.
func classesOf(d trainingjob.Definition) []classUse {
	return []classUse{
		{path.Root("master").AtName("priority_class_name"), d.Master.PriorityClassName},
		{path.Root("workers").AtName("priority_class_name"), d.Workers.PriorityClassName},
		{path.Root("workers").AtName("floor_priority_class_name"), d.FloorPriorityClassName},
	}
}

// checkPriorityClasses refuses a class that does not exist before anything is made: the API server takes the Job, and
// then refuses each of its pods for ever. Who may not read the classes is not checked.
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
			diags.AddAttributeError(use.at, "There is no such priority class", fmt.Sprintf(
				"PriorityClass %q does not exist, and Kubernetes would refuse every pod that names it. "+
					"Where this configuration makes the class, refer to it, so that it is made first: elastic_priority_class.NAME.name instead of %q.", use.name, use.name))
		}
	}
	return diags
}

// createJob makes the suspended Job that will own all the rest.
func (c *jobCluster) createJob(ctx context.Context, d trainingjob.Definition) (*trainingjob.Objects, *batchv1.Job, diag.Diagnostics) {
	var diags diag.Diagnostics
	credentials, err := trainingjob.NewCredentials(rand.Reader, time.Now(), trainingjob.MasterName(d.Job.Name))
	if err != nil {
		diags.AddError("Cannot make the job's credentials", err.Error())
		return nil, nil, diags
	}
	objects, err := trainingjob.Render(d, credentials)
	if err != nil {
		diags.AddError("Not a training job that can run", err.Error())
		return nil, nil, diags
	}
	job, err := cluster.Create(ctx, c.client, c.client.Kubernetes().BatchV1().Jobs(d.Job.Namespace), objects.Job)
	if err != nil {
		c.subject.explain(&diags, err)
	}
	return objects, job, diags
}

// createParts makes what the Job owns, and then lets it start.
func (c *jobCluster) createParts(ctx context.Context, objects *trainingjob.Objects, job trainingjob.JobRef) diag.Diagnostics {
	var diags diag.Diagnostics
	objects.Own(job)
	for i, part := range objects.Parts() {
		var err error
		if objects.Floor != nil && part == trainingjob.Object(objects.Floor) {
			err = c.reach(ctx, objects)
		}
		if err == nil {
			err = c.createPart(ctx, part, job)
		}
		if err != nil {
			c.explainPart(&diags, part, err)
			diags.AddWarning("The training job is incomplete, and has not started", fmt.Sprintf(
				"Job %s/%s and %d of its %d other objects exist; the Job is suspended and has no master. All are in the state: "+
					"the next terraform apply removes them and begins anew, and terraform destroy removes them.", job.Namespace, job.Name, i, len(objects.Parts())))
			return diags
		}
	}
	resume := map[string]any{"metadata": map[string]any{"uid": job.UID}, "spec": map[string]any{"suspend": false}}
	if err := c.part(objects.Job).patch(ctx, resume); err != nil {
		c.subject.explain(&diags, err)
	}
	return diags
}

// explainPart adds the way out: to what is there already under a part's name, which nobody should import as a job, and to
// what Kubernetes says when somebody grants more than they may do themselves.
func (c *jobCluster) explainPart(diags *diag.Diagnostics, part trainingjob.Object, err error) {
	summary, detail := cluster.Explain(err)
	var exists *cluster.AlreadyExistsError
	if errors.As(err, &exists) {
		diags.AddError(summary, fmt.Sprintf("%s %s needs an object of this name for itself, and somebody else's is there already (written by %s). "+
			"Give the job another name, or delete that object first.", c.noun, c.subject.importID, strings.Join(exists.Managers, ", ")))
		return
	}
	switch part.(type) {
	case *corev1.ServiceAccount, *rbacv1.Role, *rbacv1.RoleBinding:
		if apierrors.IsForbidden(err) {
			diags.AddAttributeError(path.Root("service_account_name"), summary, detail+
				"\n\n"+c.account+"; whoever creates that Role must hold each of its verbs. "+
				"Have them granted, or name an account that has them by service_account_name: then no RBAC object is made.")
			return
		}
	}
	c.subject.explain(diags, err)
}

// How long and how often to wait for what an earlier job of the same name has left to Kubernetes' garbage collector.
const (
	leftoversTimeout = 30 * time.Second
	leftoversPause   = 500 * time.Millisecond
)

// createPart makes one object. One that is there because an earlier Job of this name was deleted by hand is about to
// be collected, and is waited for.
func (c *jobCluster) createPart(ctx context.Context, part trainingjob.Object, job trainingjob.JobRef) error {
	until := time.Now().Add(leftoversTimeout)
	for {
		err := c.part(part).create(ctx)
		var exists *cluster.AlreadyExistsError
		if !errors.As(err, &exists) || time.Now().After(until) {
			return err
		}
		there, getErr := c.part(part).get(ctx)
		if getErr == nil && !isLeftover(there, job) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(leftoversPause):
		}
	}
}

// isLeftover says whether an object belongs to another Job of the same name, which is gone: ours has taken the name.
func isLeftover(object metav1.Object, job trainingjob.JobRef) bool {
	for _, owner := range object.GetOwnerReferences() {
		if owner.Kind == "Job" && owner.Name == job.Name && owner.UID != job.UID {
			return true
		}
	}
	return false
}
