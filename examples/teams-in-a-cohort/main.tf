# Two teams that lend each other quota: one module for each, in one cohort, with a flavor that they share.

terraform {
  required_version = ">= 1.8"
  required_providers {
    elastic = { source = "elastic-training/elastic" }
  }
}

provider "elastic" {} # the environment variable KUBE_CONFIG_PATH selects the cluster

resource "elastic_resource_flavor" "shared" {
  name        = "shared"
  node_labels = var.node_labels
}

resource "elastic_cohort" "teams" {
  name = "teams"
}

module "team" {
  source   = "../modules/team-queue" # copy examples/modules along with this folder
  for_each = var.teams

  team      = each.key
  namespace = each.value.namespace
  cohort    = elastic_cohort.teams.name
  flavors = [{
    name            = elastic_resource_flavor.shared.name
    existing        = true
    quota           = each.value.quota
    borrowing_limit = each.value.borrowing_limit
    lending_limit   = each.value.lending_limit
  }]
}

output "queues" {
  description = "What the jobs of each team set as queue."
  value = { for team, queue in module.team : team => {
    name                        = queue.local_queue
    workload_priority_class     = queue.priority_classes.burst
    min_workload_priority_class = queue.priority_classes.minimum
  } }
}
