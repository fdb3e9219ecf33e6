//go:build !podsonly

package trainingjob

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
)

// minJob runs the first Min workers, each under its completion index as its number. Where they find their master is
// not known yet; see Objects.Reach.
func (d Definition) minJob(group string) (*batchv1.Job, error) {
	template, err := d.WorkerTemplate()
	if err != nil {
		return nil, err
	}
	d.Queue.addToGroup(&template, group, d.Min+1)
	template.Annotations = withRequest(template.Annotations, d.Queue.Topology.OfCore(RoleWorker))
	template.Labels[LabelMinimum] = "true"
	if d.MinPriorityClassName != "" {
		template.Spec.PriorityClassName = d.MinPriorityClassName
	}
	return &batchv1.Job{
		TypeMeta: typeMeta("batch/v1", "Job"),
		// Labels of its own: a Job without any gets its template's, and Kueue would queue it besides its pods.
		ObjectMeta: d.meta(MinJobName(d.Job.Name)),
		Spec: batchv1.JobSpec{
			CompletionMode: new(batchv1.IndexedCompletion),
			Completions:    new(int32(d.Min)),
			Parallelism:    new(int32(d.Min)),
			BackoffLimit:   new(int32(backoffLimit)),
			// Without it the minimum would be made again for ever after the master's Job has failed by its own.
			ActiveDeadlineSeconds: clone(d.ActiveDeadlineSeconds),
			// A group never has more pods than it was admitted with.
			PodReplacementPolicy: new(batchv1.Failed),
			PodFailurePolicy:     &batchv1.PodFailurePolicy{Rules: d.disruptions(RoleWorker)},
			Template:             template,
		},
	}, nil
}

// SetMasterAddress passes the master's address to the minimum workers: an IP address, not a name, for clusters without
// DNS.
func (o *Objects) SetMasterAddress(address string) {
	if o.MinJob == nil {
		return
	}
	containers := o.MinJob.Spec.Template.Spec.Containers
	if i := slices.IndexFunc(containers, isWorker); i >= 0 {
		containers[i].Args = append(slices.Clip(containers[i].Args), "--master", address, "--id", "$(JOB_COMPLETION_INDEX)")
	}
}
