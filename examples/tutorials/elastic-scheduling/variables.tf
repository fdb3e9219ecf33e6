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
  description = "Where both jobs run."
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

variable "submit_high" {
  description = "Whether the second, high-priority job is submitted. The tutorial's order is false first, then true."
  type        = bool
  default     = true
}

variable "low_workers" {
  description = "Maximum number of workers of the low-priority job."
  type        = number
  default     = 2
}

variable "low_epochs" {
  description = "Passes of the low-priority job over the data."
  type        = number
  default     = 1
}

variable "high_epochs" {
  description = "Passes of the high-priority job over the data."
  type        = number
  default     = 1
}

variable "learning_rate" {
  description = "Overrides the model file's learning rate; null keeps it."
  type        = number
  default     = null
}

variable "pace" {
  description = "How long every gradient lasts at least, such as 50ms; null for full speed."
  type        = string
  default     = null
}
