# A thousand objects of eight kinds, 125 of each.

terraform {
  required_providers {
    elastic = { source = "elastic-training/elastic" }
  }
}

resource "elastic_priority_class" "bench" {
  count = 125

  name        = "bench-${count.index}"
  value       = 1000 + count.index
  description = "A class."
}

resource "elastic_workload_priority_class" "bench" {
  count = 125

  name        = "bench-${count.index}"
  value       = 1000 + count.index
  description = "A class."
}

resource "elastic_resource_flavor" "bench" {
  count = 125

  name        = "bench-${count.index}"
  node_labels = { pool = "bench-${count.index}" }
}

resource "elastic_topology" "bench" {
  count = 125

  name   = "bench-${count.index}"
  levels = [{ node_label = "rack" }, { node_label = "kubernetes.io/hostname" }]
}

resource "elastic_admission_check" "bench" {
  count = 125

  name            = "bench-${count.index}"
  controller_name = "example.com/bench"
}

resource "elastic_cohort" "bench" {
  count = 125

  name = "bench-${count.index}"
}

resource "elastic_cluster_queue" "bench" {
  count = 125

  name               = "bench-${count.index}"
  cohort_name        = elastic_cohort.bench[count.index].name
  namespace_selector = {}
  resource_groups = [{
    covered_resources = ["cpu", "memory"]
    flavors = [{
      name = elastic_resource_flavor.bench[count.index].name
      resources = [
        { name = "cpu", nominal_quota = "10", borrowing_limit = "5" },
        { name = "memory", nominal_quota = "40Gi", borrowing_limit = "20Gi" },
      ]
    }]
  }]
  preemption = { within_cluster_queue = "LowerPriority" }
}

resource "elastic_local_queue" "bench" {
  count = 125

  name          = "bench-${count.index}"
  namespace     = "default"
  cluster_queue = elastic_cluster_queue.bench[count.index].name
}
