# What runs is evicted too: the nodes are needed.
# terraform apply -invoke=action.elastic_queue_drain.maintenance
action "elastic_queue_drain" "maintenance" {
  config {
    name = "team" # a ClusterQueue; with a namespace, a LocalQueue
  }
}
