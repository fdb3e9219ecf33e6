resource "elastic_cluster_queue" "research" {
  name               = "research"
  namespace_selector = { match_labels = { "kubernetes.io/metadata.name" = "team-a" } }
  preemption         = { within_cluster_queue = "LowerPriority" }
}

# Jobs of the namespace name it in their label kueue.x-k8s.io/queue-name.
resource "elastic_local_queue" "user_queue" {
  name          = "user-queue"
  namespace     = "team-a"
  cluster_queue = elastic_cluster_queue.research.name
  wait_for      = "active" # says so when the ClusterQueue or one of its flavors is missing
}
