variable "endpoint" {
  description = "The address of the cluster's API server: gcloud container clusters describe NAME --format='value(endpoint)'."
  type        = string
}

variable "cluster_ca_certificate" {
  description = "Its certificate authority in base64: gcloud container clusters describe NAME --format='value(masterAuth.clusterCaCertificate)'."
  type        = string
}

variable "image" {
  description = "The trainer's image in Artifact Registry, best by its digest, as `make image` prints it."
  type        = string
}

variable "namespace" {
  description = "Where the jobs and their queue are. It exists, and has no LocalQueue called default."
  type        = string
  default     = "training"
}

variable "on_demand_pool" {
  description = "The node pool of machines that stay: masters, and what GKE and Kueue run themselves."
  type        = string
  default     = "default-pool"
}

variable "spot_pool" {
  description = "The node pool of spot machines."
  type        = string
  default     = "spot"
}

variable "t4_nodes" {
  description = "How many machines with T4s the cluster may have; 0 leaves out their queue and its task."
  type        = number
  default     = 0
}

variable "t4s_per_node" {
  description = "How many T4s each of them has."
  type        = number
  default     = 4
}

variable "epochs" {
  description = "Passes of the job over its data."
  type        = number
  default     = 20
}
