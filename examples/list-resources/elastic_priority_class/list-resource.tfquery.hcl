# All PriorityClasses, but Kubernetes' own.
# terraform query -generate-config-out=found.tf
list "elastic_priority_class" "all" {
  provider = elastic
}
