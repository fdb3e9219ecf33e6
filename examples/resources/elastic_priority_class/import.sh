# By its name.
terraform import elastic_priority_class.low low-priority
