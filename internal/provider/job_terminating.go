package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
)

// terminatingJob is nil for a Job that is not being deleted.
func terminatingJob(job *batchv1.Job) *cluster.Terminating {
	return cluster.TerminatingOf(cluster.Ref{Kind: "Job", Namespace: job.Namespace, Name: job.Name}, job)
}

// warnTerminating warns that a job is being deleted: nothing in it differs from the configuration, so that a plan would
// not show it.
func (c *jobCluster) warnTerminating(ctx context.Context, diags *diag.Diagnostics, job *batchv1.Job) {
	if terminating := terminatingJob(job); terminating != nil {
		diags.AddWarning(c.isBeingDeleted(), c.whyTerminating(ctx, job, terminating)+"\n\n"+goneAndMadeAgain)
	}
}

func (c *jobCluster) isBeingDeleted() string {
	return fmt.Sprintf("%s %s is being deleted", c.noun, c.subject.importID)
}

// whyTerminating describes since when a Job is being deleted, what blocks it, and the remedy.
func (c *jobCluster) whyTerminating(ctx context.Context, job *batchv1.Job, terminating *cluster.Terminating) string {
	text := terminating.String()
	if remedy := terminating.Remedy(); remedy != "" {
		text += "\n\n" + remedy
	}
	if !slices.Contains(job.Finalizers, metav1.FinalizerDeleteDependents) {
		return text
	}
	if stay := c.podsThatStay(ctx, refOfJob(job)); len(stay) > 0 {
		text += "\n\nThese pods still exist:\n\n  " + strings.Join(stay, "\n  ")
	}
	return text
}

// podsThatStay describes, for each pod of a deleted job, what blocks its deletion, and the remedy. It is empty if the
// pods cannot be listed.
func (c *jobCluster) podsThatStay(ctx context.Context, ref trainingjob.JobRef) []string {
	pods, err := c.pods(ctx, ref)
	if err != nil {
		return nil
	}
	lines := make([]string, 0, len(pods))
	for i := range pods {
		lines = append(lines, c.whyItStays(ctx, &pods[i]))
	}
	return lines
}

func refOfJob(job *batchv1.Job) trainingjob.JobRef {
	return trainingjob.JobRef{Name: job.Name, Namespace: job.Namespace, UID: job.UID}
}

// jobGoneError is the end of a wait for a job that was deleted.
type jobGoneError struct {
	ref trainingjob.JobRef
	job *batchv1.Job // while it is being deleted; nil when it is gone, or another has its name
}

func (e *jobGoneError) Error() string {
	if e.job != nil {
		return fmt.Sprintf("job %s/%s is being deleted", e.ref.Namespace, e.ref.Name)
	}
	return fmt.Sprintf("job %s/%s was deleted during the wait", e.ref.Namespace, e.ref.Name)
}

// stillThere is the Job that a wait is about; a jobGoneError when it was deleted, after which nothing will come of the
// wait.
func stillThere(ref trainingjob.JobRef, found []*batchv1.Job) (*batchv1.Job, error) {
	switch {
	case len(found) == 0 || found[0].UID != ref.UID:
		return nil, &jobGoneError{ref: ref}
	case found[0].DeletionTimestamp != nil:
		return found[0], &jobGoneError{ref: ref, job: found[0]}
	}
	return found[0], nil
}

// endedByDeletion is the warning of a wait that has ended with the job; false where it ended for another reason.
func (c *jobCluster) endedByDeletion(ctx context.Context, goal string, err error) (diag.Diagnostic, bool) {
	var gone *jobGoneError
	switch {
	case !errors.As(err, &gone):
		return nil, false
	case gone.job == nil:
		return diag.NewWarningDiagnostic(fmt.Sprintf("%s %s was deleted", c.noun, c.subject.importID), fmt.Sprintf(
			"Its Job was deleted outside of Terraform while the apply waited for it to be %s. The next plan creates it again.", goal)), true
	default:
		// A title of its own: Terraform shows only one of several warnings with the same title, and the refresh has
		// used this one's.
		return diag.NewWarningDiagnostic(fmt.Sprintf("%s %s will not be %s: it is being deleted", c.noun, c.subject.importID, goal),
			"It was deleted outside of Terraform. "+c.whyTerminating(ctx, gone.job, terminatingJob(gone.job))+"\n\n"+goneAndMadeAgain), true
	}
}

// mayChange is the Job that is meant; it is an error unless there is a Job with the UID that is meant, which is not
// being deleted.
func (c *jobCluster) mayChange(ctx context.Context, ref trainingjob.JobRef) (*batchv1.Job, diag.Diagnostics) {
	var diags diag.Diagnostics
	job, err := cluster.Get(ctx, c.client, c.client.Kubernetes().BatchV1().Jobs(ref.Namespace), ref.Name)
	if err == nil && job.UID != ref.UID {
		err = c.client.Wrap("update", cluster.Ref{Kind: "Job", Namespace: ref.Namespace, Name: ref.Name}, &cluster.RecreatedError{Expected: ref.UID, Got: job.UID})
	}
	if err != nil {
		c.subject.explain(&diags, err)
		return nil, diags
	}
	if terminating := terminatingJob(job); terminating != nil {
		diags.AddError(c.isBeingDeleted(), "Nothing was changed. "+c.whyTerminating(ctx, job, terminating)+
			"\n\nWhen it is deleted, run terraform apply again to create the "+c.word+" again.")
	}
	return job, diags
}
