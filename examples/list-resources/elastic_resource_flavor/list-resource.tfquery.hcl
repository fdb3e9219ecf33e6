# The flavors that a team has labelled.
# terraform query -generate-config-out=found.tf
list "elastic_resource_flavor" "found" {
  provider = elastic

  config {
    label_selector = "team=vision"
  }
}
