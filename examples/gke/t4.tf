# With a pool of machines that have T4s each (var.t4s_per_node): a separate queue, so that pods without GPUs do not
# use their capacity, and a task in it.

resource "elastic_resource_flavor" "t4" {
  count = var.t4_nodes > 0 ? 1 : 0

  name        = "t4"
  node_labels = { "cloud.google.com/gke-accelerator" = one(provider::elastic::accelerator_labels("T4")["cloud.google.com/gke-accelerator"]) }

  # GKE taints machines with GPUs, and lets pods that request one tolerate it. Kueue asks before there is such a pod.
  node_taints = [{ key = "nvidia.com/gpu", value = "present", effect = "NoSchedule" }]
  tolerations = [{ key = "nvidia.com/gpu", operator = "Exists", effect = "NoSchedule" }]
}

resource "elastic_cluster_queue" "t4" {
  count = var.t4_nodes > 0 ? 1 : 0

  name               = "t4"
  namespace_selector = { match_labels = { "kubernetes.io/metadata.name" = var.namespace } }

  resource_groups = [{
    covered_resources = ["cpu", "memory", "nvidia.com/gpu"]
    flavors = [{
      name = elastic_resource_flavor.t4[0].name
      resources = [
        { name = "cpu", nominal_quota = tostring(14 * var.t4_nodes) }, # of an n1-standard-16
        { name = "memory", nominal_quota = "${50 * var.t4_nodes}Gi" },
        { name = "nvidia.com/gpu", nominal_quota = tostring(var.t4s_per_node * var.t4_nodes) },
      ]
    }]
  }]

  preemption = { within_cluster_queue = "LowerPriority" }
}

resource "elastic_local_queue" "t4" {
  count = var.t4_nodes > 0 ? 1 : 0

  name          = "t4-queue"
  namespace     = var.namespace
  cluster_queue = elastic_cluster_queue.t4[0].name
}

resource "elastic_task" "t4" {
  count = var.t4_nodes > 0 ? 1 : 0

  name         = "t4"
  namespace    = var.namespace
  image        = "docker.io/library/debian:stable-slim"
  run          = "ls /dev/nvidia*" # GKE brings the driver; a task of yours names an image with CUDA
  accelerators = "T4:${var.t4s_per_node}"
  cpus         = "4+"
  memory       = "16+"
  queue = {
    name                    = elastic_local_queue.t4[0].name
    workload_priority_class = elastic_workload_priority_class.burst.name
  }
}
