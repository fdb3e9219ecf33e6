# A job of two workers, of which one is killed while it trains. --pace gives the test time for that.

terraform {
  required_providers {
    elastic = { source = "elastic-training/elastic" }
  }
}

variable "namespace" {
  type = string
}

resource "elastic_training_job" "digits" {
  name      = "digits"
  namespace = var.namespace
  image     = "elastic-trainer:test"
  model     = { name = "mnist" }
  data      = { training = "synthetic://digits?records=1200&seed=1", records_per_task = 50 }
  training  = { epochs = 1, minibatch_size = 10, grads_to_wait = 4, seed = 1 }
  wait_for  = "running"
  master    = { resources = { requests = { cpu = "500m", memory = "256Mi" } } }
  workers = {
    min           = 1
    max           = 2
    resources     = { requests = { cpu = "500m", memory = "256Mi" } }
    pod_overrides = jsonencode({ spec = { containers = [{ name = "worker", args = ["worker", "--threads", "1", "--pace", "200ms"] }] } })
  }
}
