# What an administrator makes for a team: its flavors of nodes, a ClusterQueue with its quota and its limits, the LocalQueue
# through which the jobs of its namespace reach it, and the priority classes that its jobs name.

terraform {
  required_version = ">= 1.8"
  required_providers {
    elastic = { source = "elastic-training/elastic" }
  }
}

locals {
  namespace = coalesce(var.namespace, var.team)

  # Every flavor covers the same resources (a validation of var.flavors): a ClusterQueue wants them in one order.
  covered_resources = sort(keys(var.flavors[0].quota))
  own_flavors       = { for f in var.flavors : f.name => f if !f.existing }
  flavor_names      = { for f in var.flavors : f.name => f.existing ? f.name : elastic_resource_flavor.team[f.name].name }
}

resource "elastic_resource_flavor" "team" {
  for_each = local.own_flavors

  name        = "${var.team}-${each.key}"
  node_labels = each.value.node_labels
  node_taints = each.value.node_taints
  tolerations = each.value.tolerations
}

resource "elastic_cluster_queue" "team" {
  name               = var.team
  namespace_selector = { match_labels = { "kubernetes.io/metadata.name" = local.namespace } }
  cohort_name        = var.cohort
  stop_policy        = var.stop_policy

  resource_groups = [{
    covered_resources = local.covered_resources
    flavors = [for f in var.flavors : {
      name = local.flavor_names[f.name]
      resources = [for resource in local.covered_resources : {
        name            = resource
        nominal_quota   = f.quota[resource]
        borrowing_limit = lookup(f.borrowing_limit, resource, null)
        lending_limit   = lookup(f.lending_limit, resource, null)
      }]
    }]
  }]

  preemption = {
    within_cluster_queue  = var.preemption.within_cluster_queue
    reclaim_within_cohort = var.preemption.reclaim_within_cohort
  }

  lifecycle {
    precondition {
      condition     = var.cohort != null || alltrue([for f in var.flavors : length(f.borrowing_limit) + length(f.lending_limit) == 0])
      error_message = "borrowing_limit and lending_limit say what team ${var.team} shares with its cohort, and cohort is null: name the cohort, or leave the limits out."
    }
  }
}

resource "elastic_local_queue" "team" {
  name          = var.local_queue
  namespace     = local.namespace
  cluster_queue = elastic_cluster_queue.team.name
  wait_for      = var.stop_policy == "None" ? "active" : "created" # a stopped queue does not become active
}

resource "elastic_workload_priority_class" "team" {
  for_each = var.priority_classes

  name        = "${var.team}-${each.key}"
  value       = each.value.value
  description = each.value.description
}
