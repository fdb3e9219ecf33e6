# ElasticDL's "Elastic scheduling" tutorial, in HCL: on three nodes of 4 CPU and 15 GB, a low-priority job with two
# workers runs until a high-priority job needs the capacity of one of them. README.md lists the tutorial's flags.

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

resource "elastic_priority_class" "high" {
  name        = "high-priority"
  value       = 1000000
  description = "Masters, and the workers of urgent jobs."
}

resource "elastic_priority_class" "low" {
  name        = "low-priority"
  value       = 1000
  description = "Workers that urgent jobs may preempt."
}

locals {
  # Copy examples/models along with this folder.
  model = { content = file("${path.module}/../../models/mnist_functional_api.py") }

  # Without a directory of records on the nodes the jobs train on digits that the trainer draws itself.
  volumes = var.data_host_path == null ? [] : [
    { name = "data", mount_path = "/data", host_path = var.data_host_path, read_only = true },
  ]
  data = {
    training         = var.data_host_path == null ? "synthetic://digits?records=8000&seed=1" : "/data/mnist/train"
    validation       = var.data_host_path == null ? "synthetic://digits?records=2000&seed=2" : "/data/mnist/test"
    format           = "recordio"
    codec            = "bytes"
    records_per_task = 100
  }

  master_resources = {
    requests = { cpu = "1000m", memory = "1024Mi" }
    limits   = { cpu = "1000m", memory = "1024Mi" }
  }
  worker_resources = {
    requests = { cpu = "3000m", memory = "4096Mi" }
    limits   = { cpu = "3000m", memory = "4096Mi" }
  }

  # Makes every gradient last: for watching, where the jobs would be over in seconds.
  slowly = var.pace == null ? null : jsonencode({
    spec = { containers = [{ name = "worker", args = ["worker", "--pace", var.pace] }] }
  })
}

resource "elastic_training_job" "low" {
  name      = "low-prio-job"
  namespace = var.namespace
  image     = var.image
  model     = local.model
  data      = local.data
  volumes   = local.volumes

  training = {
    epochs         = var.low_epochs
    minibatch_size = 10
    grads_to_wait  = 2
    learning_rate  = var.learning_rate
  }

  master = {
    # Same priority as the urgent job's master: evicting a master interrupts the whole job, evicting a worker only slows it down.
    priority_class_name = elastic_priority_class.high.name
    resources           = local.master_resources
  }

  workers = {
    min                 = 1
    max                 = var.low_workers
    priority_class_name = elastic_priority_class.low.name
    resources           = local.worker_resources
    pod_overrides       = local.slowly
  }

  wait_for = "running"
}

resource "elastic_training_job" "high" {
  count = var.submit_high ? 1 : 0

  name      = "high-prio-job"
  namespace = var.namespace
  image     = var.image
  model     = local.model
  data      = local.data
  volumes   = local.volumes

  training = {
    epochs         = var.high_epochs
    minibatch_size = 10
    grads_to_wait  = 2
    learning_rate  = var.learning_rate
  }

  master = {
    priority_class_name = elastic_priority_class.high.name
    resources           = local.master_resources
  }

  workers = {
    min                 = 1
    max                 = 1
    priority_class_name = elastic_priority_class.high.name
    resources           = local.worker_resources
    pod_overrides       = local.slowly
  }

  wait_for = "running"

  # Every pod of this job has the highest priority here, so nothing can preempt its master.
  master_priority_check = "off"

  # The tutorial submits the second job when every pod of the first one runs.
  depends_on = [elastic_training_job.low]
}
