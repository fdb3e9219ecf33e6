# A team's repository: its queue, and the jobs that run in it. plan.yml plans every pull request and fails if
# its jobs would evict pods of others, or could never run.

terraform {
  required_version = ">= 1.8"
  required_providers {
    elastic = { source = "elastic-training/elastic" }
  }
}

provider "elastic" { # the environment variable KUBE_CONFIG_PATH selects the cluster
  forecast = var.forecast
}

module "research" {
  source = "../modules/team-queue" # copy examples/modules along; elsewhere: github.com/elastic-training/terraform-provider-elastic//examples/modules/team-queue

  team      = "research"
  namespace = var.namespace
  flavors   = [{ name = "any", quota = { cpu = "6", memory = "24Gi" } }]
}

resource "elastic_training_job" "nightly" {
  name      = "nightly"
  namespace = module.research.namespace
  image     = "ghcr.io/elastic-training/elastic-trainer:0.1.0" # not published yet: use your own (make image)
  model     = { name = "mnist" }
  data      = { training = "synthetic://digits?records=8000&seed=1", records_per_task = 100 }
  training  = { minibatch_size = 10, grads_to_wait = 2 }

  master = { resources = { requests = { cpu = "1", memory = "1Gi" } } }
  workers = {
    min       = 1
    max       = 4
    resources = { requests = { cpu = "1", memory = "1Gi" } }
  }

  queue = {
    name                        = module.research.local_queue
    workload_priority_class     = module.research.priority_classes.burst
    min_workload_priority_class = module.research.priority_classes.minimum
  }
}

variable "namespace" {
  description = "The namespace of the team's jobs, which exists already."
  type        = string
  default     = "team-research"
}

variable "forecast" {
  description = "warn: a plan warns about pods that its jobs would evict. error: it fails if there are any, if a job can never run, or if no certain forecast is possible."
  type        = string
  default     = "warn"
}
