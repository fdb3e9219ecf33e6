# And back to work.
# terraform apply -invoke=action.elastic_queue_release.done
action "elastic_queue_release" "done" {
  config {
    name = "team" # a ClusterQueue; with a namespace, a LocalQueue
  }
}
