# Only what stays the same: an output of something live would be a change at every plan.

output "watch" {
  description = "How to look at the job's pods and their nodes, and at what Kueue says of them."
  value = {
    pods      = "kubectl get pods -n ${var.namespace} -l elasticdl_job_name=${elastic_training_job.digits.name} -o wide"
    workloads = "kubectl get workloads -n ${var.namespace}"
    page      = "kubectl port-forward -n ${var.namespace} job/${elastic_training_job.digits.name} 8080"
  }
}
