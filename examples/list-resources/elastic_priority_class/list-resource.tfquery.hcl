# All PriorityClasses, the system's among them.
# terraform query -generate-config-out=found.tf
list "elastic_priority_class" "all" {
  provider = elastic
}
