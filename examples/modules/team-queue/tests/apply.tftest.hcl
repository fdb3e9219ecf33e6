# Makes a team's queue in namespace default, and takes it away again.

variables {
  team      = "tftest-apply"
  namespace = "default"
  flavors   = [{ name = "any", quota = { cpu = "2", memory = "4Gi" } }]
}

run "makes_a_queue" {
  assert {
    condition     = output.cluster_queue == "tftest-apply" && output.local_queue == "training" && output.namespace == "default"
    error_message = "The queues are ${output.cluster_queue} and ${output.namespace}/${output.local_queue}."
  }
  assert {
    condition     = output.priority_classes == { burst = "tftest-apply-burst", minimum = "tftest-apply-minimum", urgent = "tftest-apply-urgent" }
    error_message = "The priority classes are ${jsonencode(output.priority_classes)}."
  }
  assert {
    condition     = alltrue([for uid in [elastic_cluster_queue.team.uid, elastic_local_queue.team.uid, elastic_resource_flavor.team["any"].uid] : uid != ""])
    error_message = "The API server has not made everything."
  }
}

run "changes_the_quota_in_place" {
  variables {
    flavors = [{ name = "any", quota = { cpu = "3", memory = "4Gi" } }]
  }
  assert {
    condition     = elastic_cluster_queue.team.resource_groups[0].flavors[0].resources[0].nominal_quota == "3"
    error_message = "The quota is ${jsonencode(elastic_cluster_queue.team.resource_groups[0].flavors[0].resources)}."
  }
}
