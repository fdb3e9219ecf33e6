variable "endpoint" {
  description = "The URL of the cluster's API server: aws eks describe-cluster --name NAME --query cluster.endpoint."
  type        = string
}

variable "cluster_ca_certificate" {
  description = "Its certificate authority in base64: aws eks describe-cluster --name NAME --query cluster.certificateAuthority.data."
  type        = string
}

variable "cluster" {
  description = "The name of the cluster, for which the provider gets tokens."
  type        = string
  default     = "elastic"
}

variable "image" {
  description = "The trainer's image in Elastic Container Registry, best by its digest, as `make image` prints it."
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
