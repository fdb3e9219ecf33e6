# All ClusterQueues that somebody has made, to take them over.
# terraform query -generate-config-out=found.tf
list "elastic_cluster_queue" "all" {
  provider = elastic
}
