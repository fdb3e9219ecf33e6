# The training jobs of a team.
# terraform query -generate-config-out=found.tf
list "elastic_training_job" "vision" {
  provider = elastic

  config {
    namespace      = "research"
    label_selector = "team=vision"
  }
}
