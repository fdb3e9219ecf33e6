# A cluster with GPUs from one configuration: namespace, Kueue, a volume for checkpoints, a queue, and a PyTorch job with
# DistributedDataParallel that runs under torchrun's rules. The cluster and its GPU nodes exist already.

terraform {
  required_version = ">= 1.8"
  required_providers {
    elastic = { source = "elastic-training/elastic" }
    helm = {
      source  = "hashicorp/helm"
      version = "~> 3.0"
    }
    kubernetes = {
      source  = "hashicorp/kubernetes"
      version = "~> 2.38"
    }
  }
}

provider "kubernetes" {
  config_path = var.config_path
}

provider "helm" {
  kubernetes = { config_path = var.config_path }
}

provider "elastic" {
  config_path = var.config_path
}

# What the administrator does once.

resource "helm_release" "kueue" {
  name             = "kueue"
  namespace        = "kueue-system"
  create_namespace = true
  repository       = "oci://registry.k8s.io/kueue/charts"
  chart            = "kueue"
  version          = "0.19.2"
  wait             = true
}

resource "kubernetes_namespace_v1" "training" {
  metadata {
    name   = var.namespace
    labels = { "pod-security.kubernetes.io/enforce" = "restricted" }
  }
}

# All workers mount it, so its class must support ReadWriteMany.
resource "kubernetes_persistent_volume_claim_v1" "checkpoints" {
  metadata {
    name      = "checkpoints"
    namespace = kubernetes_namespace_v1.training.metadata[0].name
  }
  spec {
    access_modes       = ["ReadWriteMany"]
    storage_class_name = var.storage_class
    resources {
      requests = { storage = "100Gi" }
    }
  }
  wait_until_bound = false # with WaitForFirstConsumer it is bound when the first pod uses it
}

resource "elastic_resource_flavor" "gpu" {
  name        = "gpu"
  node_labels = var.gpu_node_labels
  tolerations = [{ key = "nvidia.com/gpu", operator = "Exists", effect = "NoSchedule" }]

  depends_on = [helm_release.kueue]
}

resource "elastic_cluster_queue" "training" {
  name               = "training"
  namespace_selector = { match_labels = { "kubernetes.io/metadata.name" = kubernetes_namespace_v1.training.metadata[0].name } }

  resource_groups = [{
    covered_resources = ["cpu", "memory", "nvidia.com/gpu"]
    flavors = [{
      name      = elastic_resource_flavor.gpu.name
      resources = [for resource in ["cpu", "memory", "nvidia.com/gpu"] : { name = resource, nominal_quota = var.quota[resource] }]
    }]
  }]

  preemption = { within_cluster_queue = "LowerPriority" }
}

resource "elastic_local_queue" "training" {
  name          = "training-queue"
  namespace     = kubernetes_namespace_v1.training.metadata[0].name
  cluster_queue = elastic_cluster_queue.training.name
}

resource "elastic_workload_priority_class" "burst" {
  name        = "burst"
  value       = 10
  description = "Workers above a job's minimum: evicted first."

  depends_on = [helm_release.kueue]
}

resource "elastic_workload_priority_class" "minimum" {
  name        = "minimum"
  value       = 100
  description = "A job's master and its minimum of workers."

  depends_on = [helm_release.kueue]
}

# What users do.

resource "elastic_training_job" "ddp" {
  name      = "ddp"
  namespace = kubernetes_namespace_v1.training.metadata[0].name
  image     = var.image
  volumes = [
    { name = "state", mount_path = "/state", claim_name = kubernetes_persistent_volume_claim_v1.checkpoints.metadata[0].name, mount_on = "workers" },
    # DataLoader's processes use /dev/shm, which has 64 MiB by default.
    { name = "shm", mount_path = "/dev/shm", empty_dir = { medium = "Memory" }, mount_on = "workers" },
  ]

  # The master needs no GPU. It has quota of the same flavor.
  master = {
    resources = { requests = { cpu = "500m", memory = "512Mi" }, limits = { memory = "512Mi" } }
  }

  workers = {
    command = ["python3", "/app/ddp.py", "--directory", "/state"]
    elastic = "restart"
    min     = 1
    max     = var.max_workers
    resources = {
      requests = { cpu = "8", memory = "64Gi", "nvidia.com/gpu" = tostring(var.gpus_per_worker) }
      limits   = { memory = "64Gi", "nvidia.com/gpu" = tostring(var.gpus_per_worker) } # one process for each GPU
    }

    termination_grace_period_seconds = 60 # the script has 55 s to write a checkpoint
  }

  queue = {
    name                        = elastic_local_queue.training.name
    workload_priority_class     = elastic_workload_priority_class.burst.name
    min_workload_priority_class = elastic_workload_priority_class.minimum.name
  }
}
