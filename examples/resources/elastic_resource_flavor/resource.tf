# All nodes alike: a flavor without attributes.
resource "elastic_resource_flavor" "default" {
  name = "default-flavor"
}

# Spot machines with a T4, which are tainted so that nothing else runs there.
resource "elastic_resource_flavor" "t4_spot" {
  name = "t4-spot"
  node_labels = {
    "cloud.google.com/gke-accelerator" = "nvidia-tesla-t4"
    "cloud.google.com/gke-spot"        = "true"
  }
  node_taints = [{ key = "cloud.google.com/gke-spot", value = "true", effect = "NoSchedule" }]
  tolerations = [{ key = "cloud.google.com/gke-spot", operator = "Exists", effect = "NoSchedule" }]
}
