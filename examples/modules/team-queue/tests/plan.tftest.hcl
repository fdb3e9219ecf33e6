# What the module would make of its variables, and what it refuses. Nothing is made.

variables {
  team      = "tftest-plan"
  namespace = "default"
  flavors   = [{ name = "any", quota = { memory = "64Gi", cpu = "16" } }]
}

run "defaults" {
  command = plan

  assert {
    condition     = elastic_resource_flavor.team["any"].name == "tftest-plan-any"
    error_message = "The flavor is called ${elastic_resource_flavor.team["any"].name}."
  }
  assert {
    condition     = elastic_cluster_queue.team.resource_groups[0].covered_resources == tolist(["cpu", "memory"])
    error_message = "The queue covers ${jsonencode(elastic_cluster_queue.team.resource_groups[0].covered_resources)}."
  }
  assert {
    condition     = [for r in elastic_cluster_queue.team.resource_groups[0].flavors[0].resources : "${r.name}=${r.nominal_quota}"] == ["cpu=16", "memory=64Gi"]
    error_message = "The quota is ${jsonencode(elastic_cluster_queue.team.resource_groups[0].flavors[0].resources)}."
  }
  assert {
    condition     = elastic_cluster_queue.team.preemption.within_cluster_queue == "LowerPriority"
    error_message = "Nothing in the queue would ever make room for an urgent job."
  }
  assert {
    condition     = elastic_cluster_queue.team.namespace_selector.match_labels == tomap({ "kubernetes.io/metadata.name" = "default" })
    error_message = "Another namespace than the team's may use its quota."
  }
  assert {
    condition     = elastic_workload_priority_class.team["burst"].value < elastic_workload_priority_class.team["minimum"].value && elastic_workload_priority_class.team["minimum"].value < elastic_workload_priority_class.team["urgent"].value
    error_message = "Workers above the minimum do not go first, or the urgent do not come first."
  }
}

run "a_namespace_of_the_teams_name" {
  command = plan
  variables {
    namespace = null
  }
  assert {
    condition     = output.namespace == "tftest-plan"
    error_message = "The team's jobs belong in ${output.namespace}."
  }
}

run "flavors_that_a_cohort_shares" {
  command = plan
  variables {
    cohort = "tftest"
    flavors = [
      { name = "spot", node_labels = { "cloud.google.com/gke-spot" = "true" }, quota = { cpu = "32", "nvidia.com/gpu" = "0" } },
      { name = "t4", existing = true, quota = { cpu = "8", "nvidia.com/gpu" = "4" }, borrowing_limit = { "nvidia.com/gpu" = "2" }, lending_limit = { "nvidia.com/gpu" = "1" } },
    ]
  }
  assert {
    condition     = keys(elastic_resource_flavor.team) == ["spot"] && output.flavors == { spot = "tftest-plan-spot", t4 = "t4" }
    error_message = "The flavors are ${jsonencode(output.flavors)}, and ${jsonencode(keys(elastic_resource_flavor.team))} are made."
  }
  assert {
    condition     = elastic_cluster_queue.team.resource_groups[0].flavors[1].resources[1].borrowing_limit == "2" && elastic_cluster_queue.team.resource_groups[0].flavors[1].resources[1].lending_limit == "1"
    error_message = "The limits of t4 are ${jsonencode(elastic_cluster_queue.team.resource_groups[0].flavors[1].resources)}."
  }
  assert {
    condition     = elastic_cluster_queue.team.cohort_name == "tftest" && elastic_cluster_queue.team.preemption.reclaim_within_cohort == "Any"
    error_message = "The team does not take back what it lent."
  }
}

run "limits_without_a_cohort_are_refused" {
  command = plan
  variables {
    flavors = [{ name = "any", quota = { cpu = "16" }, borrowing_limit = { cpu = "4" } }]
  }
  expect_failures = [elastic_cluster_queue.team]
}

run "flavors_of_different_resources_are_refused" {
  command = plan
  variables {
    flavors = [{ name = "a", quota = { cpu = "16" } }, { name = "b", quota = { memory = "16Gi" } }]
  }
  expect_failures = [var.flavors]
}

run "a_limit_of_what_has_no_quota_is_refused" {
  command = plan
  variables {
    cohort  = "tftest"
    flavors = [{ name = "a", quota = { cpu = "16" }, lending_limit = { memory = "1Gi" } }]
  }
  expect_failures = [var.flavors]
}

run "no_flavor_is_refused" {
  command = plan
  variables {
    flavors = []
  }
  expect_failures = [var.flavors]
}

run "labels_for_an_existing_flavor_are_refused" {
  command = plan
  variables {
    flavors = [{ name = "t4", existing = true, node_labels = { a = "b" }, quota = { cpu = "16" } }]
  }
  expect_failures = [var.flavors]
}

run "names_and_words_that_mean_nothing_are_refused" {
  command = plan
  variables {
    team             = "Research_Team"
    local_queue      = "default"
    stop_policy      = "Stop"
    preemption       = { within_cluster_queue = "Always", reclaim_within_cohort = "Never" }
    priority_classes = { half = { value = 0.5 } }
  }
  expect_failures = [var.team, var.local_queue, var.stop_policy, var.preemption, var.priority_classes]
}
