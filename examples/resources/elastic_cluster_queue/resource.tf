resource "elastic_resource_flavor" "t4" {
  name        = "t4"
  node_labels = { "cloud.google.com/gke-accelerator" = "nvidia-tesla-t4" }
}

resource "elastic_cluster_queue" "research" {
  name               = "research"
  namespace_selector = {} # jobs of every namespace; left out, of none

  resource_groups = [{
    covered_resources = ["cpu", "memory", "nvidia.com/gpu"]
    flavors = [{
      name = elastic_resource_flavor.t4.name
      resources = [
        { name = "cpu", nominal_quota = "32" },
        { name = "memory", nominal_quota = "128Gi" },
        { name = "nvidia.com/gpu", nominal_quota = "8", borrowing_limit = "4" },
      ]
    }]
  }]

  # The teams' queues lend each other unused quota, and reclaim it when they need it.
  cohort_name = "all-teams"
  preemption = {
    within_cluster_queue  = "LowerPriority" # by default, workloads of this queue are never preempted by others of the queue
    reclaim_within_cohort = "Any"
  }
}
