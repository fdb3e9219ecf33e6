# By its name.
terraform import elastic_topology.datacenter datacenter
