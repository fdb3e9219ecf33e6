# Determines the order in a queue, and which workloads a ClusterQueue preempts. Jobs name the class in
# their label kueue.x-k8s.io/priority-class.
resource "elastic_workload_priority_class" "low" {
  name        = "low-priority"
  value       = 100
  description = "Development: may be evicted, and is queued again."
}

resource "elastic_workload_priority_class" "high" {
  name        = "high-priority"
  value       = 1000
  description = "Mission critical: takes the place of low-priority workloads."
}
