# Each resource of the provider once, as a platform team would connect them.

terraform {
  required_providers {
    elastic = { source = "elastic-training/elastic" }
  }
}

variable "namespace" {
  type = string
}

resource "elastic_priority_class" "low" {
  name  = "every-low"
  value = 100
}

resource "elastic_workload_priority_class" "low" {
  name  = "every-low"
  value = 100
}

resource "elastic_topology" "hosts" {
  name   = "every-hosts"
  levels = [{ node_label = "kubernetes.io/hostname" }]
}

resource "elastic_resource_flavor" "racked" {
  name          = "every-racked"
  node_labels   = { "kubernetes.io/os" = "linux" }
  topology_name = elastic_topology.hosts.name
}

resource "elastic_resource_flavor" "any" {
  name = "every-any"
}

resource "elastic_admission_check" "provisioned" {
  name            = "every-provisioned"
  controller_name = "example.com/provisioner"
}

resource "elastic_cohort" "teams" {
  name = "every-team"
  resource_groups = [{
    covered_resources = ["cpu"]
    flavors           = [{ name = elastic_resource_flavor.any.name, resources = [{ name = "cpu", nominal_quota = "1" }] }]
  }]
}

resource "elastic_cluster_queue" "racked" {
  name                      = "every-racked"
  admission_checks_strategy = { admission_checks = [{ name = elastic_admission_check.provisioned.name }] }
  resource_groups = [{
    covered_resources = ["cpu"]
    flavors           = [{ name = elastic_resource_flavor.racked.name, resources = [{ name = "cpu", nominal_quota = "1" }] }]
  }]
}

resource "elastic_cluster_queue" "team" {
  name               = "every-team"
  namespace_selector = {}
  cohort_name        = elastic_cohort.teams.name
  preemption         = { within_cluster_queue = "LowerPriority" }
  resource_groups = [{
    covered_resources = ["cpu", "memory"]
    flavors = [{
      name      = elastic_resource_flavor.any.name
      resources = [{ name = "cpu", nominal_quota = "4" }, { name = "memory", nominal_quota = "8Gi" }]
    }]
  }]
}

resource "elastic_local_queue" "team" {
  name          = "team"
  namespace     = var.namespace
  cluster_queue = elastic_cluster_queue.team.name
  wait_for      = "active"
}

resource "elastic_task" "greets" {
  name      = "greets"
  namespace = var.namespace
  image     = "debian"
  run       = "echo hello"
  cpus      = "0.1"
  memory    = "0.1"
  queue     = { name = elastic_local_queue.team.name, workload_priority_class = elastic_workload_priority_class.low.name }
  wait_for  = "succeeded"
}

resource "elastic_training_job" "digits" {
  name      = "digits"
  namespace = var.namespace
  image     = "elastic-trainer:test"
  model     = { name = "mnist" }
  data      = { training = "synthetic://digits?records=400&seed=1", records_per_task = 100 }
  training  = { minibatch_size = 10, grads_to_wait = 2 }
  workers   = { max = 1, priority_class_name = elastic_priority_class.low.name, resources = { requests = { cpu = "500m", memory = "256Mi" } } }
  master    = { resources = { requests = { cpu = "500m", memory = "256Mi" } } }
  wait_for  = "succeeded"
}
