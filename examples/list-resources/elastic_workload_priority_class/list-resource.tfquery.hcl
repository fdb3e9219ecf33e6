# All WorkloadPriorityClasses.
# terraform query -generate-config-out=found.tf
list "elastic_workload_priority_class" "found" {
  provider = elastic
}
