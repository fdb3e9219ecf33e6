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
  description = "Where the jobs and their queue are. It has no LocalQueue called default."
  type        = string
  default     = "default"
}

variable "image" {
  description = "An image with the trainer and PyTorch, as examples/pytorch/Dockerfile builds it."
  type        = string
  default     = "registry.example.com/team/elastic-pytorch:1"
}

variable "task_image" {
  description = "An image with a shell, for the urgent task."
  type        = string
  default     = "docker.io/library/busybox:1.37"
}

variable "python" {
  description = "The Python of the image that has PyTorch."
  type        = string
  default     = "python3"
}

variable "claim" {
  description = "A PersistentVolumeClaim that all workers can mount (ReadWriteMany), for checkpoints."
  type        = string
  default     = "checkpoints"
}

variable "shared_host_path" {
  description = "In place of the claim, a directory that is the same on every node."
  type        = string
  default     = null
}

variable "epochs" {
  description = "Passes of both jobs over their records."
  type        = number
  default     = 20
}

variable "pace" {
  description = "Seconds that each step of ddp.py, and each minibatch of loop.py, lasts longer, to watch them."
  type        = string
  default     = "0.3"
}

variable "urgent" {
  description = "Whether the urgent task is there."
  type        = bool
  default     = false
}
