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
  description = "Where the job runs."
  type        = string
  default     = "default"
}

variable "image" {
  description = "The trainer's image. The default is not published yet: push your own (make image)."
  type        = string
  default     = "ghcr.io/elastic-training/elastic-trainer:0.1.0"
}

variable "data_host_path" {
  description = "A directory on every node that holds mnist/train and mnist/test in RecordIO; null for synthetic digits."
  type        = string
  default     = null
}

variable "epochs" {
  description = "Passes of the job over the data."
  type        = number
  default     = 4
}

variable "pace" {
  description = "How long every gradient lasts at least, such as 50ms; null for full speed."
  type        = string
  default     = null
}
