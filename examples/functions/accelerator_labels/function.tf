# A flavor for the nodes that GKE marks as having T4s.
resource "elastic_resource_flavor" "t4" {
  name = "t4"
  node_labels = {
    "cloud.google.com/gke-accelerator" = one(provider::elastic::accelerator_labels("T4")["cloud.google.com/gke-accelerator"])
  }
}
