# A training job behind a gate: the plan fails when it would evict another job's pod, when it can never run, and when
# no certain forecast is possible. The guide "Will my job preempt other pods?" explains it.

terraform {
  required_version = ">= 1.8"
  required_providers {
    elastic = { source = "elastic-training/elastic" }
  }
}

provider "elastic" {
  config_path = var.config_path
  forecast    = "error" # "warn" only warns

  # Reasons for which an approximate forecast passes this gate.
  forecast_accepted_reasons = ["too-many-choices"]
}

resource "elastic_training_job" "nightly" {
  name     = "nightly"
  image    = "ghcr.io/elastic-training/elastic-trainer:0.1.0"                       # not published yet: use your own (make image)
  model    = { content = file("${path.module}/../models/mnist_functional_api.py") } # copy examples/models along
  data     = { training = "synthetic://digits?records=8000&seed=1", records_per_task = 100 }
  training = { minibatch_size = 10, grads_to_wait = 2 }

  master = {
    priority_class_name = "high-priority"
    resources           = { requests = { cpu = "1000m", memory = "1024Mi" } }
  }
  workers = {
    min                 = 1
    max                 = 4
    priority_class_name = "low-priority"
    resources           = { requests = { cpu = "3000m", memory = "4096Mi" } }
  }
}

# Defines what may be evicted: batch jobs, but never production.
data "elastic_forecast" "urgent" {
  name = "urgent"
  pods = [
    { name = "master", requests = { cpu = "1" }, priority_class_name = "high-priority" },
    { name = "worker", count = 2, min = 1, starts_after_previous = true, requests = { cpu = "3" }, priority_class_name = "high-priority" },
  ]
}

check "production_is_not_evicted" {
  assert {
    condition = data.elastic_forecast.urgent.available && alltrue([
      for v in coalesce(data.elastic_forecast.urgent.victims, []) : v.namespace != "production"
    ])
    error_message = coalesce(data.elastic_forecast.urgent.text, data.elastic_forecast.urgent.reason)
  }
}

variable "config_path" {
  description = "The kubeconfig file of the cluster."
  type        = string
}
