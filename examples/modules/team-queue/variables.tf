variable "team" {
  description = "The team's name: that of its ClusterQueue, and what the names of its flavors and priority classes begin with, since those are the whole cluster's."
  type        = string

  validation {
    condition     = can(regex("^[a-z0-9]([-a-z0-9]{0,28}[a-z0-9])?$", var.team))
    error_message = "team must be small letters, digits and '-', at most 30 of them, and begin and end with a letter or digit."
  }
}

variable "namespace" {
  description = "The namespace of the team's jobs, which exists already (namespace.yaml makes one that enforces a Pod Security Standard and refuses system priorities); the team's name by default."
  type        = string
  default     = null
}

variable "local_queue" {
  description = "What jobs in the namespace call the queue: queue.name of a training job, queue of a task."
  type        = string
  default     = "training"

  validation {
    condition     = can(regex("^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$", var.local_queue)) && var.local_queue != "default"
    error_message = "local_queue must be small letters, digits and '-', at most 63 of them; and not \"default\", which Kueue gives to every job that names no queue."
  }
}

variable "flavors" {
  description = "Sorts of nodes in the order in which they are tried, each with the team's quota of it, and with what the team may borrow from its cohort and lends to it, by resource. One that exists already, which teams of a cohort share, is named as it is (existing = true); the others are made, as TEAM-NAME."
  type = list(object({
    name            = string
    existing        = optional(bool, false)
    quota           = map(string)
    borrowing_limit = optional(map(string), {})
    lending_limit   = optional(map(string), {})
    node_labels     = optional(map(string))
    node_taints     = optional(list(object({ key = string, value = optional(string), effect = string })))
    tolerations     = optional(list(object({ key = optional(string), operator = optional(string), value = optional(string), effect = optional(string) })))
  }))

  validation {
    condition     = length(var.flavors) > 0 && length(distinct(var.flavors[*].name)) == length(var.flavors)
    error_message = "flavors must be one or more, each name once."
  }

  validation {
    condition     = alltrue([for f in var.flavors : length(f.quota) > 0 && length(setsubtract(keys(f.quota), keys(var.flavors[0].quota))) == 0 && length(f.quota) == length(var.flavors[0].quota)])
    error_message = "quota must name the same resources in every flavor, such as cpu and memory: a workload gets all of them from one flavor. Give \"0\" where there is none."
  }

  validation {
    condition     = alltrue([for f in var.flavors : length(setsubtract(concat(keys(f.borrowing_limit), keys(f.lending_limit)), keys(f.quota))) == 0])
    error_message = "borrowing_limit and lending_limit must name resources of the flavor's quota only."
  }

  validation {
    condition     = alltrue([for f in var.flavors : !f.existing || (f.node_labels == null && f.node_taints == null && f.tolerations == null)])
    error_message = "node_labels, node_taints and tolerations are not for a flavor with existing = true: they are those that it has."
  }
}

variable "cohort" {
  description = "The cohort, in which queues lend each other unused quota; null for a queue without a cohort."
  type        = string
  default     = null
}

variable "preemption" {
  description = "The workloads that a job of the team may preempt: lower-priority workloads of its queue, and workloads that borrow the team's quota. The documentation of elastic_cluster_queue explains the values."
  type = object({
    within_cluster_queue  = optional(string, "LowerPriority")
    reclaim_within_cohort = optional(string, "Any")
  })
  default = {}

  validation {
    condition     = contains(["Never", "LowerPriority", "LowerOrNewerEqualPriority"], var.preemption.within_cluster_queue)
    error_message = "preemption.within_cluster_queue must be Never, LowerPriority or LowerOrNewerEqualPriority."
  }

  validation {
    condition     = contains(["Never", "LowerPriority", "Any"], var.preemption.reclaim_within_cohort)
    error_message = "preemption.reclaim_within_cohort must be Never, LowerPriority or Any."
  }
}

variable "priority_classes" {
  description = "The team's workload priority classes, made as TEAM-NAME; the higher the value, the more important. The values count in the whole cohort."
  type = map(object({
    value       = number
    description = optional(string)
  }))
  default = {
    burst   = { value = 10, description = "Workers above a job's minimum: the first to go." }
    minimum = { value = 100, description = "A job's master and the workers that it cannot do without." }
    urgent  = { value = 1000, description = "Whole jobs that cannot wait." }
  }

  validation {
    condition     = alltrue([for name in keys(var.priority_classes) : can(regex("^[a-z0-9]([-a-z0-9]{0,28}[a-z0-9])?$", name))])
    error_message = "The names of priority_classes must be small letters, digits and '-', at most 30 of them."
  }

  validation {
    condition     = alltrue([for c in values(var.priority_classes) : c.value == floor(c.value) && c.value >= -2147483648 && c.value <= 2147483647])
    error_message = "The values of priority_classes must be whole numbers of 32 bits."
  }
}

variable "stop_policy" {
  description = "None: the queue works. Hold: nothing new starts. HoldAndDrain: besides, what runs is evicted, so that the queue can be deleted."
  type        = string
  default     = "None"

  validation {
    condition     = contains(["None", "Hold", "HoldAndDrain"], var.stop_policy)
    error_message = "stop_policy must be None, Hold or HoldAndDrain."
  }
}
