# Two PyTorch jobs in one Kueue queue: loop.py, a loop with collectives of its own, and ddp.py of examples/pytorch, a script for
# torchrun that knows nothing of this project. An urgent task takes the workers above their minimum, and gives them back.
# README.md describes the steps.

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

# What the administrator does once: 3.2 CPUs, and who goes first.

resource "elastic_resource_flavor" "any" {
  name = "any"
}

resource "elastic_cluster_queue" "research" {
  name               = "research"
  namespace_selector = {} # every namespace

  resource_groups = [{
    covered_resources = ["cpu", "memory"]
    flavors = [{
      name = elastic_resource_flavor.any.name
      resources = [
        { name = "cpu", nominal_quota = "3200m" },
        { name = "memory", nominal_quota = "16Gi" },
      ]
    }]
  }]

  preemption = { within_cluster_queue = "LowerPriority" }
}

resource "elastic_local_queue" "research" {
  name          = "research-queue"
  namespace     = var.namespace
  cluster_queue = elastic_cluster_queue.research.name
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
  description = "Tasks that cannot wait."
}

# What users do.

locals {
  # The scripts write their checkpoints there; all workers see the same directory.
  shared = [{
    name       = "shared"
    mount_path = "/mnt/shared"
    mount_on   = "workers"
    claim_name = var.shared_host_path == null ? var.claim : null
    host_path  = var.shared_host_path
  }]

  queue = {
    name                        = elastic_local_queue.research.name
    workload_priority_class     = elastic_workload_priority_class.burst.name
    min_workload_priority_class = elastic_workload_priority_class.minimum.name
  }

  # Neither master runs a script or needs PyTorch.
  master = {
    resources = { requests = { cpu = "100m", memory = "256Mi" }, limits = { memory = "256Mi" } }
  }
  resources = { requests = { cpu = "500m", memory = "1Gi" }, limits = { memory = "1Gi" } }
}

resource "elastic_training_job" "loop" {
  name      = "loop"
  namespace = var.namespace
  image     = var.image
  model     = { content = file("${path.module}/loop.py") }
  output    = "/mnt/shared/loop"
  volumes   = local.shared
  data      = { training = "indices://lines?records=320", records_per_task = 32 }

  training = {
    epochs         = var.epochs
    minibatch_size = 8
    grads_to_wait  = 4
  }

  master = local.master
  workers = {
    command   = [var.python]
    elastic   = "collectives"
    min       = 1
    max       = 3
    resources = local.resources
    env       = { PACE = var.pace, RESULT = "/mnt/shared/loop/result.json" }
  }

  queue = local.queue
}

resource "elastic_training_job" "ddp" {
  name      = "ddp"
  namespace = var.namespace
  image     = var.image
  model     = { content = file("${path.module}/../pytorch/ddp.py") } # copy examples/pytorch along with this folder
  volumes   = local.shared

  master = local.master
  workers = {
    # The script's path is the last argument; sh gives it the script's own.
    command                  = ["/bin/sh", "-c", "exec ${var.python} \"$0\" --directory /mnt/shared/ddp --every 5 --pace ${var.pace} --epochs ${var.epochs}"]
    elastic                  = "restart"
    restart_interval_seconds = 5
    min                      = 1
    max                      = 3
    resources                = local.resources
  }

  queue = local.queue
}

resource "elastic_task" "urgent" {
  count = var.urgent ? 1 : 0

  name      = "urgent"
  namespace = var.namespace
  image     = var.task_image
  run       = "sleep 10"
  cpus      = "2"
  memory    = "1"
  queue     = { name = elastic_local_queue.research.name, workload_priority_class = elastic_workload_priority_class.urgent.name }
  wait_for  = "admitted"
}
