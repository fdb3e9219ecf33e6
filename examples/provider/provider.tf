terraform {
  required_version = ">= 1.8"
  required_providers {
    elastic = { source = "elastic-training/elastic" }
  }
}

provider "elastic" {
  config_path = "~/.kube/config"
  forecast    = "warn" # plans warn about pods that jobs would evict; with "error" they fail
}

# For kube-scheduler: pods of this priority may preempt workers, but not masters.
resource "elastic_priority_class" "high" {
  name  = "high-priority"
  value = 1000000
}

resource "elastic_priority_class" "low" {
  name  = "low-priority"
  value = 1000
}

# Trains on synthetic digits, with one to four workers, depending on the available capacity.
resource "elastic_training_job" "digits" {
  name     = "digits"
  image    = "ghcr.io/elastic-training/elastic-trainer:0.1.0" # not published yet: use your own (make image)
  model    = { name = "mnist" }                               # or { content = file("model.py") }
  data     = { training = "synthetic://digits?records=8000&seed=1", records_per_task = 100 }
  training = { minibatch_size = 10, grads_to_wait = 4 }

  master = {
    priority_class_name = elastic_priority_class.high.name
    resources           = { requests = { cpu = "1", memory = "1Gi" } }
  }
  workers = {
    min                 = 1
    max                 = 4
    priority_class_name = elastic_priority_class.low.name
    resources           = { requests = { cpu = "1", memory = "1Gi" } }
  }

  wait_for = "running"
}
