//go:build !podsonly

package trainingjob

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// PhaseOf is the phase that the master has reported, unless the master cannot: a Job that has failed by its own rules
// has failed, whatever the last status was, and one that a user has suspended is suspended. A nil job decides nothing.
// What a queue does to the job is not in it.
func PhaseOf(status Status, job *batchv1.Job) Phase {
	switch {
	case status.Phase.Finished() || job == nil:
		return status.Phase
	case JobCondition(job, batchv1.JobFailed) != nil:
		return PhaseFailed
	case JobCondition(job, batchv1.JobComplete) != nil: // its master has ended well, and its status is lost
		return PhaseSucceeded
	case IsSuspended(job):
		return PhaseSuspended
	default:
		return status.Phase
	}
}

// IsSuspended reports whether the Job controller creates no pods of a Job because a user, or Kueue, has suspended it.
func IsSuspended(job *batchv1.Job) bool { return job.Spec.Suspend != nil && *job.Spec.Suspend }

// JobCondition is the condition of a Job that is true; nil if it is not.
func JobCondition(job *batchv1.Job, kind batchv1.JobConditionType) *batchv1.JobCondition {
	for i, c := range job.Status.Conditions {
		if c.Type == kind && c.Status == corev1.ConditionTrue {
			return &job.Status.Conditions[i]
		}
	}
	return nil
}
