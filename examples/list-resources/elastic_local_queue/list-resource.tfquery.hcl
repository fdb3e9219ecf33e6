# The queues of a team in its namespace.
# terraform query -generate-config-out=found.tf
list "elastic_local_queue" "vision" {
  provider = elastic

  config {
    namespace      = "research"
    label_selector = "team=vision"
  }
}
