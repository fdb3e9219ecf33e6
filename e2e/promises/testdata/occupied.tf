# Tasks of low priority on all three nodes, and a queue most of whose quota is used.

terraform {
  required_providers {
    elastic = { source = "elastic-training/elastic" }
  }
}

variable "namespace" {
  type = string
}

resource "elastic_priority_class" "low" {
  name  = "outcomes-low"
  value = 100
}

resource "elastic_priority_class" "high" {
  name  = "outcomes-high"
  value = 1000
}

resource "elastic_task" "occupant" {
  count = 3

  name                = "occupant-${count.index}"
  namespace           = var.namespace
  image               = "debian"
  run                 = "sleep 100000"
  cpus                = "3.1"
  memory              = "0.1"
  priority_class_name = elastic_priority_class.low.name
  wait_for            = "running"
}

resource "elastic_resource_flavor" "any" {
  name = "outcomes-any"
}

resource "elastic_cluster_queue" "small" {
  name               = "small"
  namespace_selector = {}
  resource_groups = [{
    covered_resources = ["cpu", "memory"]
    flavors = [{
      name      = elastic_resource_flavor.any.name
      resources = [{ name = "cpu", nominal_quota = "500m" }, { name = "memory", nominal_quota = "1Gi" }]
    }]
  }]
}

resource "elastic_local_queue" "small" {
  name          = "small"
  namespace     = var.namespace
  cluster_queue = elastic_cluster_queue.small.name
  wait_for      = "active"
}

resource "elastic_task" "queued" {
  name      = "queued"
  namespace = var.namespace
  image     = "debian"
  run       = "sleep 100000"
  cpus      = "0.2"
  memory    = "0.1"
  queue     = { name = elastic_local_queue.small.name }
  wait_for  = "running"
}
