# The cohorts that a team has labelled.
# terraform query -generate-config-out=found.tf
list "elastic_cohort" "found" {
  provider = elastic

  config {
    label_selector = "team=vision"
  }
}
