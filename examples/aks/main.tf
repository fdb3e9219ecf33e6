# A training job on AKS, under Kueue: its master on machines that stay, its workers on spot machines, which may be taken back.
# README.md creates the cluster.

terraform {
  required_version = ">= 1.8"
  required_providers {
    elastic = { source = "elastic-training/elastic" }
  }
}

# Without a kubeconfig: the command prints a token for the account that is logged in, or for the identity of the pipeline.
provider "elastic" {
  host                   = var.endpoint
  cluster_ca_certificate = base64decode(var.cluster_ca_certificate)

  exec = {
    api_version = "client.authentication.k8s.io/v1beta1"
    command     = "kubelogin" # the id is that of AKS itself, the same for every cluster
    args        = ["get-token", "--login", "azurecli", "--server-id", "6dae42f8-4368-4678-94ff-3960e28e3630"]
  }
}

# What the administrator does once: the two kinds of machines as flavors.

resource "elastic_resource_flavor" "on_demand" {
  name        = "on-demand"
  node_labels = { "kubernetes.azure.com/agentpool" = var.on_demand_pool }
}

resource "elastic_resource_flavor" "spot" {
  name        = "spot"
  node_labels = { "kubernetes.azure.com/scalesetpriority" = "spot" }

  # The taint excludes other pods. Kueue adds the toleration to the pods that it admits.
  node_taints = [{ key = "kubernetes.azure.com/scalesetpriority", value = "spot", effect = "NoSchedule" }]
  tolerations = [{ key = "kubernetes.azure.com/scalesetpriority", operator = "Equal", value = "spot", effect = "NoSchedule" }]
}

resource "elastic_cluster_queue" "training" {
  name               = "training"
  namespace_selector = { match_labels = { "kubernetes.io/metadata.name" = var.namespace } }

  # What Standard_D4s_v5 machines have left for pods: see `kubectl describe node`.
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
  description = "Workers above a job's minimum: evicted first."
}

resource "elastic_workload_priority_class" "minimum" {
  name        = "minimum"
  value       = 100
  description = "A job's master and its minimum of workers."
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
    node_selector = { "kubernetes.azure.com/agentpool" = var.on_demand_pool }
    resources     = { requests = { cpu = "500m", memory = "1Gi" }, limits = { memory = "1Gi" } }
  }

  # On spot machines, one worker on each.
  workers = {
    min                              = 1
    max                              = 2
    node_selector                    = { "kubernetes.azure.com/scalesetpriority" = "spot" }
    termination_grace_period_seconds = 25
    resources                        = { requests = { cpu = "3", memory = "4Gi" }, limits = { memory = "4Gi" } }
  }

  queue = {
    name                        = elastic_local_queue.training.name
    workload_priority_class     = elastic_workload_priority_class.burst.name
    min_workload_priority_class = elastic_workload_priority_class.minimum.name
  }

  wait_for = "running"
  timeouts = { create = "15m" } # machines that are created first take minutes
}
