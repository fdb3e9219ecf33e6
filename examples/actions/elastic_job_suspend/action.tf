# terraform apply -invoke=action.elastic_job_suspend.night
action "elastic_job_suspend" "night" {
  config {
    name      = "low-prio-job"
    namespace = "research"
  }
}
