# The topologies that a team has labelled.
# terraform query -generate-config-out=found.tf
list "elastic_topology" "found" {
  provider = elastic

  config {
    label_selector = "team=vision"
  }
}
