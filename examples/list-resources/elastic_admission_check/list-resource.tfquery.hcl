# The admission checks that a team has labelled.
# terraform query -generate-config-out=found.tf
list "elastic_admission_check" "found" {
  provider = elastic

  config {
    label_selector = "team=vision"
  }
}
