# Nothing more is admitted, and what runs continues.
# terraform apply -invoke=action.elastic_queue_hold.freeze
action "elastic_queue_hold" "freeze" {
  config {
    name = "team" # a ClusterQueue; with a namespace, a LocalQueue
  }
}
