# terraform apply -invoke=action.elastic_job_resume.morning
action "elastic_job_resume" "morning" {
  config {
    name      = "low-prio-job"
    namespace = "research"
  }
}
