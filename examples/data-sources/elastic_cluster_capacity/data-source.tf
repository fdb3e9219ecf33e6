data "elastic_cluster_capacity" "t4" {
  node_selector = { "cloud.google.com/gke-accelerator" = "nvidia-tesla-t4" }
}

# The check fails if no task with four T4s could start now.
check "room_for_four_t4s" {
  assert {
    condition     = anytrue([for n in data.elastic_cluster_capacity.t4.nodes : tonumber(lookup(n.free, "nvidia.com/gpu", "0")) >= 4])
    error_message = "No node has four T4s free."
  }
}

output "unused_quota" {
  value = {
    for q in coalesce(data.elastic_cluster_capacity.t4.queues, []) : q.name => { for f in q.quotas : "${f.flavor} ${f.resource}" => f.free }
  }
}
