variable "config_path" {
  description = "The kubeconfig file of the cluster."
  type        = string
}

variable "image" {
  description = "An image with PyTorch, the trainer and /app/ddp.py, as examples/pytorch/Dockerfile builds it."
  type        = string
}

variable "namespace" {
  description = "The namespace of the jobs, which this configuration creates."
  type        = string
  default     = "training"
}

variable "storage_class" {
  description = "A StorageClass that supports ReadWriteMany, such as one for NFS, EFS, Filestore or Azure Files."
  type        = string
}

variable "gpu_node_labels" {
  description = "Labels that only the nodes with GPUs have. NVIDIA's GPU operator sets this one."
  type        = map(string)
  default     = { "nvidia.com/gpu.present" = "true" }
}

variable "quota" {
  description = "What the queue may use of these nodes."
  type        = map(string)
  default     = { cpu = "64", memory = "512Gi", "nvidia.com/gpu" = "8" }
}

variable "gpus_per_worker" {
  description = "The GPUs of each worker."
  type        = number
  default     = 2
}

variable "max_workers" {
  description = "The largest number of workers."
  type        = number
  default     = 4
}
