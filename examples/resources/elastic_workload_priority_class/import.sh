# By its name.
terraform import elastic_workload_priority_class.low low-priority
