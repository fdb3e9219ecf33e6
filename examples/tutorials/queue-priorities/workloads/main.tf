# The Workloads of all namespaces, and the reason why each one waits. This is a separate configuration because its output
# differs at every plan.

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

variable "config_path" {
  description = "The kubeconfig file of the cluster."
  type        = string
}

variable "config_context" {
  description = "The context in it; null for its current one."
  type        = string
  default     = null
}

variable "namespace" {
  description = "Whose workloads are listed."
  type        = string
  default     = "default"
}

data "elastic_workloads" "all" {
  namespace = var.namespace
}

output "workloads" {
  description = "Every workload of the namespace."
  value       = data.elastic_workloads.all.workloads
}
