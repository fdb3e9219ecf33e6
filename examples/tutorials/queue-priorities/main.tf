# Trainy's "Job priorities and pre-emption", in HCL: a queue with quota for four T4s, a low-priority task that takes all
# of them, and a high-priority task that takes them away. README.md says what the page leaves out, and why it matters.

terraform {
  required_version = ">= 1.8"
  required_providers {
    elastic = { source = "elastic-training/elastic" }
  }
}

provider "elastic" {
  config_path    = var.config_path
  config_context = var.config_context
}

# What the administrator does once.

resource "elastic_resource_flavor" "t4" {
  name        = "t4"
  node_labels = var.t4_node_labels

  # Nodes with GPUs are often tainted, so that nothing else runs there; admitted tasks get this toleration.
  tolerations = [{ key = "nvidia.com/gpu", operator = "Exists", effect = "NoSchedule" }]
}

resource "elastic_cluster_queue" "team" {
  name               = "team"
  namespace_selector = {} # every namespace

  resource_groups = [{
    covered_resources = ["cpu", "memory", "nvidia.com/gpu"]
    flavors = [{
      name = elastic_resource_flavor.t4.name
      resources = [
        { name = "cpu", nominal_quota = "16" },
        { name = "memory", nominal_quota = "60Gi" },
        { name = "nvidia.com/gpu", nominal_quota = "4" },
      ]
    }]
  }]

  # Missing in the tutorial. Kueue's default is Never: a high-priority task then waits until the low-priority task ends.
  preemption = { within_cluster_queue = "LowerPriority" }
}

resource "elastic_local_queue" "user" {
  name          = "user-queue" # the tasks' label kueue.x-k8s.io/queue-name
  namespace     = var.namespace
  cluster_queue = elastic_cluster_queue.team.name
}

resource "elastic_workload_priority_class" "low" {
  name        = "low-priority" # the tasks' label kueue.x-k8s.io/priority-class
  value       = 100
  description = "Development: preempted by higher-priority tasks, and queued again."
}

resource "elastic_workload_priority_class" "high" {
  name        = "high-priority"
  value       = 1000
  description = "Mission critical."
}

# What a user does: the page's own two files.

resource "elastic_task" "low" {
  count = var.submit_low ? 1 : 0

  name      = "low"
  namespace = var.namespace
  image     = var.image
  yaml      = file("${path.module}/low.yaml")
  wait_for  = "running"

  # The queue and the classes are named in the file, where Terraform does not see them.
  depends_on = [elastic_local_queue.user, elastic_workload_priority_class.low]
}

resource "elastic_task" "high" {
  count = var.submit_high ? 1 : 0

  name      = "high"
  namespace = var.namespace
  image     = var.image
  # The page's task sleeps for eleven days; var.high_seconds lets it end sooner.
  yaml     = replace(file("${path.module}/high.yaml"), "sleep 1000000", "sleep ${var.high_seconds}")
  wait_for = "running"

  depends_on = [elastic_task.low, elastic_local_queue.user, elastic_workload_priority_class.high]
}
