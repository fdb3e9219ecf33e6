# A training job on unreliable nodes: spot instances, or a shared cluster with preemption. After each failure the job continues
# with the remaining workers, and scales up again. Its final model is identical to that of an uninterrupted run. README.md
# describes the failures.

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

locals {
  # Without a directory of records on the nodes the job trains on digits that the trainer draws itself.
  volumes = var.data_host_path == null ? [] : [
    { name = "data", mount_path = "/data", host_path = var.data_host_path, read_only = true },
  ]

  # Makes every gradient last: for watching, where the job would be over in seconds.
  slowly = var.pace == null ? null : jsonencode({
    spec = { containers = [{ name = "worker", args = ["worker", "--pace", var.pace] }] }
  })
}

resource "elastic_training_job" "survivor" {
  name      = "survivor"
  namespace = var.namespace
  image     = var.image
  model     = { content = file("${path.module}/../models/mnist_functional_api.py") } # copy examples/models along
  volumes   = local.volumes

  data = {
    training         = var.data_host_path == null ? "synthetic://digits?records=8000&seed=1" : "/data/mnist/train"
    validation       = var.data_host_path == null ? "synthetic://digits?records=2000&seed=2" : "/data/mnist/test"
    records_per_task = 100
  }

  training = {
    epochs         = var.epochs
    minibatch_size = 10
    grads_to_wait  = 3
  }

  master = {
    # For Prometheus servers that select pods by annotations; see the guide "Watching a job".
    annotations = {
      "prometheus.io/scrape" = "true"
      "prometheus.io/port"   = "8080"
    }
    resources = {
      requests = { cpu = "1", memory = "1Gi" }
      limits   = { cpu = "1", memory = "1Gi" }
    }
  }

  # More than half of a node of four CPUs: every worker has a node of its own, so that no node takes two of them along.
  workers = {
    min = 1
    max = 3
    resources = {
      requests = { cpu = "2", memory = "2Gi" }
      limits   = { cpu = "2", memory = "2Gi" }
    }
    pod_overrides = local.slowly
  }

  wait_for = "running"
}
