# Only what stays the same: an output of a live number (steps_done, workers_running) would be a change at every plan.
# `terraform apply -refresh-only` followed by `terraform show` prints those.

output "watch" {
  description = "How to look at the job's pods."
  value       = "kubectl get pods -n ${var.namespace} -l elasticdl_job_name=${elastic_training_job.survivor.name} -o wide --watch"
}
