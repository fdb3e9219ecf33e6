# Two jobs on a kind cluster whose node declares two GPUs: job urgent needs one of those that job steady uses.

terraform {
  required_version = ">= 1.8"
  required_providers {
    elastic = { source = "elastic-training/elastic" }
  }
}

provider "elastic" {
  config_path = "kubeconfig" # of this cluster only
}

variable "submit_urgent" {
  description = "Whether the second job is submitted."
  type        = bool
  default     = true
}

variable "image" {
  description = "The trainer's image."
  type        = string
  default     = "ghcr.io/elastic-training/elastic-trainer:dev" # as make image names it
}

resource "elastic_priority_class" "high" {
  name  = "high-priority"
  value = 1000
}

resource "elastic_priority_class" "low" {
  name  = "low-priority"
  value = 100
}

locals {
  # Copy examples/models along with this folder.
  model = { content = file("${path.module}/../models/mnist_functional_api.py") }
  data  = { training = "synthetic://digits?records=4000&seed=1", records_per_task = 100 }

  master_resources = { requests = { cpu = "50m", memory = "128Mi" } }
  worker_resources = { requests = { cpu = "100m", memory = "256Mi" }, limits = { "example.com/gpu" = "1" } }

  # Each gradient takes at least this long: the jobs would be over in seconds.
  slowly = jsonencode({ spec = { containers = [{ name = "worker", args = ["worker", "--pace", "50ms"] }] } })
}

resource "elastic_training_job" "steady" {
  name     = "steady"
  image    = var.image
  model    = local.model
  data     = local.data
  training = { epochs = 3, minibatch_size = 10, grads_to_wait = 2 }
  master   = { priority_class_name = elastic_priority_class.high.name, resources = local.master_resources }
  workers = {
    min                 = 1
    max                 = 2
    priority_class_name = elastic_priority_class.low.name
    resources           = local.worker_resources
    pod_overrides       = local.slowly
  }
  wait_for = "running"
}

resource "elastic_training_job" "urgent" {
  count = var.submit_urgent ? 1 : 0

  name     = "urgent"
  image    = var.image
  model    = local.model
  data     = local.data
  training = { epochs = 1, minibatch_size = 10, grads_to_wait = 2 }
  master   = { priority_class_name = elastic_priority_class.high.name, resources = local.master_resources }
  workers = {
    min                 = 1
    max                 = 1
    priority_class_name = elastic_priority_class.high.name
    resources           = local.worker_resources
    pod_overrides       = local.slowly
  }
  wait_for              = "running"
  master_priority_check = "off" # every pod of this job has the highest priority here

  # It is submitted when the first job runs.
  depends_on = [elastic_training_job.steady]
}
