# Before the node pool is changed, the job's newest state is on disk.
action "elastic_job_checkpoint" "before_upgrade" {
  config {
    name      = "low-prio-job"
    namespace = "research"
  }
}

resource "terraform_data" "node_version" {
  input = "1.36.4"

  lifecycle {
    action_trigger {
      events  = [before_update]
      actions = [action.elastic_job_checkpoint.before_upgrade]
    }
  }
}
