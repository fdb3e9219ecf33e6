# The tasks of a team.
# terraform query -generate-config-out=found.tf
list "elastic_task" "vision" {
  provider = elastic

  config {
    namespace      = "research"
    label_selector = "team=vision"
  }
}
