# A job that another configuration manages.
data "elastic_training_job" "low" {
  name = "low-prio-job"
}

check "it_learns" {
  assert {
    condition     = data.elastic_training_job.low.phase != "Failed"
    error_message = "low-prio-job has failed."
  }
}
