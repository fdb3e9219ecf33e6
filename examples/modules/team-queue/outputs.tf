output "namespace" {
  description = "Where the team's jobs belong."
  value       = elastic_local_queue.team.namespace
}

output "local_queue" {
  description = "What they call the queue."
  value       = elastic_local_queue.team.name
}

output "cluster_queue" {
  description = "The queue that has the quota."
  value       = elastic_cluster_queue.team.name
}

output "priority_classes" {
  description = "The priority classes' names in the cluster, by those of var.priority_classes."
  value       = { for name, class in elastic_workload_priority_class.team : name => class.name }
}

output "flavors" {
  description = "The flavors' names in the cluster, by those of var.flavors."
  value       = local.flavor_names
}
