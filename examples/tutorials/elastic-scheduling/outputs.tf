# As of the last refresh: a job goes on without Terraform.

output "low" {
  description = "The low-priority job."
  value = {
    phase           = elastic_training_job.low.phase
    steps           = "${elastic_training_job.low.steps_done} of ${elastic_training_job.low.steps_total}"
    workers_running = elastic_training_job.low.workers_running
    workers_pending = elastic_training_job.low.workers_pending
    preemptions     = elastic_training_job.low.preemptions
    model_sha256    = elastic_training_job.low.model_sha256
  }
}

output "high" {
  description = "The high-priority job; null until it is submitted."
  value = one([for job in elastic_training_job.high : {
    phase        = job.phase
    steps        = "${job.steps_done} of ${job.steps_total}"
    model_sha256 = job.model_sha256
  }])
}
