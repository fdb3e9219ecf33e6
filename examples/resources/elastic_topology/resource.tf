# From the widest to the narrowest level: the pods of a workload are placed in the narrowest domain with enough capacity.
resource "elastic_topology" "datacenter" {
  name = "datacenter"
  levels = [
    { node_label = "cloud.provider.com/topology-block" },
    { node_label = "cloud.provider.com/topology-rack" },
    { node_label = "kubernetes.io/hostname" },
  ]
}

resource "elastic_resource_flavor" "racked" {
  name          = "racked"
  node_labels   = { "cloud.provider.com/node-group" = "gpu" }
  topology_name = elastic_topology.datacenter.name
}
