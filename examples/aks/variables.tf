variable "endpoint" {
  description = "The URL of the cluster's API server: kubectl config view --minify --raw -o jsonpath='{.clusters[0].cluster.server}'."
  type        = string
}

variable "cluster_ca_certificate" {
  description = "Its certificate authority in base64: kubectl config view --minify --raw -o jsonpath='{.clusters[0].cluster.certificate-authority-data}'."
  type        = string
}

variable "on_demand_pool" {
  description = "The node pool of machines that stay: masters, and what AKS and Kueue run themselves."
  type        = string
  default     = "system"
}

variable "image" {
  description = "The trainer's image in Azure Container Registry, best by its digest, as `make image` prints it."
  type        = string
}

variable "namespace" {
  description = "Where the jobs and their queue are. It exists, and has no LocalQueue called default."
  type        = string
  default     = "training"
}

variable "epochs" {
  description = "Passes of the job over its data."
  type        = number
  default     = 20
}
