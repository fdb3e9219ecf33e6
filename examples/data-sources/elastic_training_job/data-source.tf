# The progress and the history of a job that another configuration manages.
data "elastic_training_job" "low" {
  name      = "low-prio-job"
  namespace = "research"
}

locals {
  low = data.elastic_training_job.low
}

output "progress" {
  value = "${local.low.phase}: step ${local.low.steps_done} of ${local.low.steps_total} with ${local.low.workers_running} workers, after ${local.low.preemptions} preemptions"
}

check "it_goes_on" {
  assert {
    condition     = !contains(["Failed", "CannotSave"], local.low.phase)
    error_message = "low-prio-job is ${local.low.phase}: ${coalesce(local.low.message, "no message")}"
  }
}
