variable "teams" {
  description = "The teams by name: their namespace, which exists already, their quota, and how much of it they may borrow from the cohort and lend to it."
  type = map(object({
    namespace       = string
    quota           = map(string)
    borrowing_limit = optional(map(string), {})
    lending_limit   = optional(map(string), {})
  }))
  default = {
    research = {
      namespace       = "team-research"
      quota           = { cpu = "16", memory = "64Gi" }
      borrowing_limit = { cpu = "8" } # at most 24 CPUs
    }
    vision = {
      namespace     = "team-a"
      quota         = { cpu = "16", memory = "64Gi" }
      lending_limit = { cpu = "8" } # 8 CPUs are always its own
    }
  }
}

variable "node_labels" {
  description = "The labels of the nodes that the teams share; null for all nodes."
  type        = map(string)
  default     = null
}
