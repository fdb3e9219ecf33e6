# A training job under a Kueue queue that scales down instead of being evicted: its master and one worker are admitted
# together, and each of three further workers separately. Urgent jobs in the same queue preempt the workers above the minimum
# first. README.md describes the steps.

terraform {
  required_version = ">= 1.8"
  required_providers {
    elastic = { source = "elastic-training/elastic" }
  }
}

provider "elastic" {
  config_path    = var.config_path
  config_context = var.config_context
}

# What the administrator does once: five CPUs, and who goes first.

resource "elastic_resource_flavor" "any" {
  name = "any"
}

resource "elastic_cluster_queue" "training" {
  name               = "training"
  namespace_selector = {} # every namespace

  resource_groups = [{
    covered_resources = ["cpu", "memory"]
    flavors = [{
      name = elastic_resource_flavor.any.name
      resources = [
        { name = "cpu", nominal_quota = "5" },
        { name = "memory", nominal_quota = "16Gi" },
      ]
    }]
  }]

  preemption = { within_cluster_queue = "LowerPriority" }
}

resource "elastic_local_queue" "training" {
  name          = "training-queue"
  namespace     = var.namespace
  cluster_queue = elastic_cluster_queue.training.name
}

resource "elastic_workload_priority_class" "burst" {
  name        = "burst"
  value       = 10
  description = "Workers above a job's minimum: the first to go."
}

resource "elastic_workload_priority_class" "minimum" {
  name        = "minimum"
  value       = 100
  description = "A job's master and the workers that it cannot do without."
}

resource "elastic_workload_priority_class" "urgent" {
  name        = "urgent"
  value       = 1000
  description = "Whole jobs that cannot wait."
}

# What users do.

locals {
  # Copy examples/models along with this folder.
  model = { content = file("${path.module}/../models/mnist_functional_api.py") }

  # Without a directory of records on the nodes the jobs train on digits that the trainer draws itself.
  volumes = var.data_host_path == null ? [] : [
    { name = "data", mount_path = "/data", host_path = var.data_host_path, read_only = true },
  ]
  data = {
    training         = var.data_host_path == null ? "synthetic://digits?records=8000&seed=1" : "/data/mnist/train"
    validation       = var.data_host_path == null ? "synthetic://digits?records=2000&seed=2" : "/data/mnist/test"
    records_per_task = 100
  }

  resources = {
    requests = { cpu = "1", memory = "1Gi" }
    limits   = { cpu = "1", memory = "1Gi" }
  }

  # Makes every gradient last: for watching, where the jobs would be over in seconds.
  slowly = var.pace == null ? null : jsonencode({
    spec = { containers = [{ name = "worker", args = ["worker", "--pace", var.pace] }] }
  })
}

resource "elastic_training_job" "elastic" {
  name      = "elastic"
  namespace = var.namespace
  image     = var.image
  model     = local.model
  data      = local.data
  volumes   = local.volumes

  training = {
    epochs         = var.epochs
    minibatch_size = 10
    grads_to_wait  = 4
  }

  master = { resources = local.resources }

  workers = {
    min           = 1
    max           = 4
    resources     = local.resources
    pod_overrides = local.slowly
  }

  queue = {
    name                        = elastic_local_queue.training.name
    workload_priority_class     = elastic_workload_priority_class.burst.name
    min_workload_priority_class = elastic_workload_priority_class.minimum.name
  }

  wait_for = "running"
}

resource "elastic_training_job" "urgent" {
  for_each = var.urgent

  name      = each.key
  namespace = var.namespace
  image     = var.image
  model     = local.model
  volumes   = local.volumes

  data = {
    training         = "synthetic://digits?records=${1000 * each.value}&seed=3"
    records_per_task = 100
  }

  training = {
    minibatch_size = 10
    grads_to_wait  = each.value
  }

  master = { resources = local.resources }

  # All of its workers are minimum workers: it is admitted as a whole, or not at all.
  workers = {
    min           = each.value
    max           = each.value
    resources     = local.resources
    pod_overrides = local.slowly
  }

  queue = {
    name                        = elastic_local_queue.training.name
    min_workload_priority_class = elastic_workload_priority_class.urgent.name
  }

  wait_for = "running"

  depends_on = [elastic_training_job.elastic]
}
