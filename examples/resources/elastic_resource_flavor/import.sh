# By its name.
terraform import elastic_resource_flavor.default default-flavor
