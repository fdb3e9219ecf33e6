# A training job on GKE, under Kueue: its master on machines that stay, its workers on spot machines, which Google takes back
# when it needs them. And a task on T4s, if there is a pool of them. README.md makes the cluster.

terraform {
  required_version = ">= 1.8"
  required_providers {
    elastic = { source = "elastic-training/elastic" }
  }
}

# Without a kubeconfig: the plugin prints a token for the gcloud account, or for the identity of the pipeline.
provider "elastic" {
  host                   = "https://${var.endpoint}"
  cluster_ca_certificate = base64decode(var.cluster_ca_certificate)

  exec = {
    api_version = "client.authentication.k8s.io/v1beta1"
    command     = "gke-gcloud-auth-plugin"
  }
}

# What the administrator does once: the node pools as flavors. GKE labels every node with the name of its pool.

resource "elastic_resource_flavor" "on_demand" {
  name        = "on-demand"
  node_labels = { "cloud.google.com/gke-nodepool" = var.on_demand_pool }
}

resource "elastic_resource_flavor" "spot" {
  name        = "spot"
  node_labels = { "cloud.google.com/gke-nodepool" = var.spot_pool }

  # The pool's taint, which excludes other pods, and the toleration that Kueue adds to admitted pods.
  node_taints = [{ key = "cloud.google.com/gke-spot", value = "true", effect = "NoSchedule" }]
  tolerations = [{ key = "cloud.google.com/gke-spot", operator = "Equal", value = "true", effect = "NoSchedule" }]
}

resource "elastic_cluster_queue" "training" {
  name               = "training"
  namespace_selector = { match_labels = { "kubernetes.io/metadata.name" = var.namespace } }

  # What the machines have for pods, less what GKE's and Kueue's own pods take: `kubectl describe node` says how much that is.
  resource_groups = [{
    covered_resources = ["cpu", "memory"]
    flavors = [
      {
        name      = elastic_resource_flavor.on_demand.name
        resources = [{ name = "cpu", nominal_quota = "1" }, { name = "memory", nominal_quota = "4Gi" }]
      },
      {
        name      = elastic_resource_flavor.spot.name
        resources = [{ name = "cpu", nominal_quota = "6" }, { name = "memory", nominal_quota = "16Gi" }]
      },
    ]
  }]

  preemption = { within_cluster_queue = "LowerPriority" }
}

resource "elastic_local_queue" "training" {
  name          = "training-queue"
  namespace     = var.namespace
  cluster_queue = elastic_cluster_queue.training.name
}

resource "elastic_workload_priority_class" "burst" {
  name        = "burst"
  value       = 10
  description = "Workers above a job's minimum: the first to go."
}

resource "elastic_workload_priority_class" "minimum" {
  name        = "minimum"
  value       = 100
  description = "A job's master and the workers that it cannot do without."
}

# Priorities on the nodes, for pods that have quota.

resource "elastic_priority_class" "master" {
  name        = "elastic-master"
  value       = 100000
  description = "Masters: a job waits for its master, and only slows down without a worker."
}

resource "elastic_priority_class" "worker" {
  name        = "elastic-worker"
  value       = 1000
  description = "Workers: preempted when a master needs their capacity."
}

# What users do.

resource "elastic_training_job" "digits" {
  name      = "digits"
  namespace = var.namespace
  image     = var.image
  model     = { name = "mnist" }
  data      = { training = "synthetic://digits?records=8000&seed=1", records_per_task = 100 }
  training  = { epochs = var.epochs, minibatch_size = 10, grads_to_wait = 2 }

  # On an on-demand machine: a job makes no progress without its master.
  master = {
    priority_class_name = elastic_priority_class.master.name
    node_selector       = { "cloud.google.com/gke-nodepool" = var.on_demand_pool }
    resources = {
      requests = { cpu = "500m", memory = "1Gi" }
      limits   = { memory = "1Gi" }
    }
  }

  # On spot machines, one worker on each n1-standard-4. When GKE stops a spot node, its pods get 15 s.
  workers = {
    min                              = 1
    max                              = 2
    priority_class_name              = elastic_priority_class.worker.name
    node_selector                    = { "cloud.google.com/gke-nodepool" = var.spot_pool }
    termination_grace_period_seconds = 15
    resources = {
      requests = { cpu = "3", memory = "4Gi" }
      limits   = { memory = "4Gi" }
    }
  }

  queue = {
    name                        = elastic_local_queue.training.name
    workload_priority_class     = elastic_workload_priority_class.burst.name
    min_workload_priority_class = elastic_workload_priority_class.minimum.name
  }

  wait_for = "running"
  timeouts = { create = "15m" } # nodes that are made first take minutes
}
