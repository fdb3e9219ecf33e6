package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-log/tflog"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	controllerconstants "sigs.k8s.io/kueue/pkg/controller/constants"
	podconstants "sigs.k8s.io/kueue/pkg/controller/jobs/pod/constants"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
)

// checkQueue refuses, before anything is created, a queue in which the job could never run. It checks nothing if the
// account may not read Kueue's objects.
func (c *trainingJobCluster) checkQueue(ctx context.Context, d trainingjob.Definition) diag.Diagnostics {
	var diags diag.Diagnostics
	if d.Queue == nil {
		return diags
	}
	at, q := path.Root("queue"), d.Queue
	diags.Append(c.checkLocalQueue(ctx, at.AtName("name"), d.Job.Namespace, q.Name,
		", so the job's pods would not be queued: they would start immediately, and the job would fail for this reason.")...)
	if diags.HasError() {
		return diags
	}
	if _, err := cluster.Get(ctx, c.client, c.client.Kueue().LocalQueues(d.Job.Namespace), trainingjob.DefaultQueue); err == nil {
		diags.AddAttributeError(at, defaultQueueInTheWay, defaultQueueDetail(d))
	}
	diags.Append(c.checkWorkloadPriorityClass(ctx, at.AtName("workload_priority_class"), q.PriorityClass)...)
	diags.Append(c.checkWorkloadPriorityClass(ctx, at.AtName("min_workload_priority_class"), q.MinPriorityClass)...)
	return diags
}

const defaultQueueInTheWay = "The namespace has a default queue"

func defaultQueueDetail(d trainingjob.Definition) string {
	return fmt.Sprintf("Namespace %s has a LocalQueue named %q. Kueue assigns every Job without a queue to it, and would queue the two Jobs of this job separately there, "+
		"instead of their pods in %q: the master and the minimum workers could then never be admitted together. Use a namespace without such a queue, or give that queue another name.",
		d.Job.Namespace, trainingjob.DefaultQueue, d.Queue.Name)
}

// reach sets the address of the master's Service, which was created before, in the minimum workers.
func (c *trainingJobCluster) reach(ctx context.Context, objects *trainingjob.Objects) error {
	service, err := cluster.Get(ctx, c.client, c.client.Kubernetes().CoreV1().Services(objects.Service.Namespace), objects.Service.Name)
	if err == nil {
		objects.SetMasterAddress(trainingjob.MasterAddress(service))
	}
	return err
}

// groupOf is the Workload of a Job's master and minimum workers: nil without a queue, and when there is none, or it
// cannot be read.
func groupOf(ctx context.Context, client *cluster.Client, job *batchv1.Job) *kueue.Workload {
	name := trainingjob.GroupOf(job.Spec.Template.Labels)
	if name == "" {
		return nil
	}
	group, err := cluster.Get(ctx, client, client.Kueue().Workloads(job.Namespace), name)
	if err != nil {
		if !apierrors.IsNotFound(err) {
			tflog.Warn(ctx, "the job's Workload cannot be read", map[string]any{"workload": job.Namespace + "/" + name, "error": err.Error()})
		}
		return nil
	}
	return group
}

// errNoWorkloads is the end of followGroup when the Workload cannot be watched.
var errNoWorkloads = errors.New("the job's Workload cannot be watched")

// followGroup sends the group's Workload whenever it changes, and nil while there is none.
func (c *trainingJobCluster) followGroup(ctx context.Context, namespace, name string, to chan<- *kueue.Workload) error {
	err := cluster.WaitFor(ctx, c.client, c.client.Kueue().Workloads(namespace), cluster.Named(name), func(found []*kueue.Workload) (bool, error) {
		if len(found) == 0 {
			return false, send(ctx, to, nil)
		}
		return false, send(ctx, to, found[0])
	})
	if err != nil && ctx.Err() == nil {
		tflog.Warn(ctx, errNoWorkloads.Error(), map[string]any{"workload": namespace + "/" + name, "error": err.Error()})
		return fmt.Errorf("%w: %w", errNoWorkloads, err)
	}
	return err
}

// workloads are Kueue's of the job's pods; none where no pod is in a queue.
func (c *trainingJobCluster) workloads(ctx context.Context, ref trainingjob.JobRef, pods []corev1.Pod) ([]kueue.Workload, error) {
	ours := map[apitypes.UID]bool{}
	for _, pod := range pods {
		if pod.Labels[controllerconstants.QueueLabel] != "" {
			ours[pod.UID] = true
		}
	}
	if len(ours) == 0 {
		return nil, nil
	}
	list, err := c.client.Kueue().Workloads(ref.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Items, func(w kueue.Workload) bool {
		return !slices.ContainsFunc(w.OwnerReferences, func(o metav1.OwnerReference) bool { return ours[o.UID] })
	}), nil
}

// explainQueue explains, in Kueue's words, why each of the job's pending workloads is not admitted.
func explainQueue(pods []corev1.Pod, workloads []kueue.Workload) []string {
	group, queued := "", false
	for _, pod := range pods {
		queued = queued || pod.Labels[controllerconstants.QueueLabel] != ""
		if name := trainingjob.GroupOf(pod.Labels); name != "" {
			group = name
		}
	}
	if !queued {
		return nil
	}
	var lines []string
	formed := group == ""
	for i := range workloads {
		w := &workloads[i]
		formed = formed || w.Name == group
		if reason := whyQueued(w); reason != "" {
			lines = append(lines, fmt.Sprintf("workload %s in queue %s: %s", w.Name, w.Spec.QueueName, reason))
		}
	}
	if !formed {
		lines = append(lines, fmt.Sprintf("workload %s, of master and minimum workers: Kueue creates it when all of their pods exist", group))
	}
	slices.Sort(lines)
	return lines
}

// whyQueued is the reason why a workload waits, "" for one that does not wait.
func whyQueued(w *kueue.Workload) string {
	s := workloadStatusOf(w)
	if s.phase == workloadAdmitted || s.phase == workloadFinished {
		return ""
	}
	text := s.phase
	if s.reason != "" && s.reason != s.phase {
		text += " (" + s.reason + ")"
	}
	return text + ": " + strings.TrimSpace(s.message)
}

// disband deletes both Jobs of a queued job, which then create no more pods, and releases its pods. It waits for
// nothing: the Jobs wait for the pods.
func (c *trainingJobCluster) disband(ctx context.Context, ref trainingjob.JobRef) error {
	if err := c.client.Verify(ctx); err != nil {
		return err
	}
	jobs := c.client.Kubernetes().BatchV1().Jobs(ref.Namespace)
	for _, name := range []string{ref.Name, trainingjob.MinJobName(ref.Name)} {
		live, err := cluster.Get(ctx, c.client, jobs, name)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		if live.UID != ref.UID && !trainingjob.OwnedBy(live, ref) {
			continue // another's
		}
		err = jobs.Delete(ctx, name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &live.UID}, PropagationPolicy: new(metav1.DeletePropagationForeground),
		})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return c.client.Wrap("delete", cluster.Ref{Kind: "Job", Namespace: ref.Namespace, Name: name}, err)
		}
	}
	return c.releaseGroup(ctx, ref)
}

// releaseGroup releases the pods of a job that is being deleted. Kueue keeps the pods of a group that has not
// succeeded, for others to replace them, until the group's Workload is deleted, or one of them is marked as not
// replaced.
func (c *trainingJobCluster) releaseGroup(ctx context.Context, ref trainingjob.JobRef) error {
	pods, err := c.pods(ctx, ref)
	if err != nil {
		return err
	}
	marked := map[string]bool{}
	for i := range pods {
		group := trainingjob.GroupOf(pods[i].Labels)
		if group == "" || marked[group] {
			continue
		}
		marked[group] = true
		workloads := c.client.Kueue().Workloads(ref.Namespace)
		err := workloads.Delete(ctx, group, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)})
		if apierrors.IsForbidden(err) {
			mark := map[string]any{"metadata": map[string]any{"annotations": map[string]any{podconstants.RetriableInGroupAnnotationKey: "false"}}}
			err = cluster.Merge(ctx, c.client, c.client.Kubernetes().CoreV1().Pods(ref.Namespace), pods[i].Name, mark)
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return c.client.Wrap("delete", cluster.Ref{Kind: "Workload", Namespace: ref.Namespace, Name: group}, err)
		}
	}
	return nil
}
