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
  description = "Where the user's queue and tasks are."
  type        = string
  default     = "default"
}

variable "image" {
  description = "An image with a shell, in which the tasks' commands run."
  type        = string
  default     = "docker.io/library/debian:stable-slim"
}

variable "t4_node_labels" {
  description = "Labels of the nodes with T4s. The default is what GKE puts on them."
  type        = map(string)
  default     = { "cloud.google.com/gke-accelerator" = "nvidia-tesla-t4" }
}

variable "submit_low" {
  description = "Whether the low-priority task is submitted."
  type        = bool
  default     = true
}

variable "submit_high" {
  description = "Whether the high-priority task is submitted. The page's order is low first, then high."
  type        = bool
  default     = true
}

variable "high_seconds" {
  description = "How long the high-priority task takes. The page's takes 1000000."
  type        = number
  default     = 1000000
}
