# A task and a training job whose pods run in one rack: a topology, a flavor and a queue that place them, and what they
# request. The guide "Racks and blocks" explains it.

terraform {
  required_version = ">= 1.8"
  required_providers {
    elastic = { source = "elastic-training/elastic" }
  }
}

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

resource "elastic_cluster_queue" "racked" {
  name               = "racked"
  namespace_selector = {} # every namespace

  resource_groups = [{
    covered_resources = ["cpu", "memory"]
    flavors = [{
      name = elastic_resource_flavor.racked.name
      resources = [
        { name = "cpu", nominal_quota = "64" },
        { name = "memory", nominal_quota = "256Gi" },
      ]
    }]
  }]

  preemption = { within_cluster_queue = "LowerPriority" }
}

resource "elastic_local_queue" "racked" {
  name          = "racked"
  cluster_queue = elastic_cluster_queue.racked.name
}

# Four pods in one rack. The task waits until a rack has room for all of them.
resource "elastic_task" "near" {
  name             = "near"
  num_nodes        = 4
  run              = "echo $SKYPILOT_NODE_RANK of $SKYPILOT_NUM_NODES"
  cpus             = "4"
  memory           = "8"
  queue            = { name = elastic_local_queue.racked.name }
  topology         = { required = "cloud.provider.com/topology-rack" }
  security_context = { run_as_user = 1000 }
}

# The master and two workers in one rack if possible; up to four more workers on any nodes of the flavor.
resource "elastic_training_job" "digits" {
  name     = "digits"
  image    = "ghcr.io/elastic-training/elastic-trainer:0.1.0" # not published yet: use your own (make image)
  model    = { name = "mnist" }
  data     = { training = "synthetic://digits?records=10000", records_per_task = 1000 }
  training = { minibatch_size = 100, grads_to_wait = 6 }
  workers  = { min = 2, max = 6 }
  queue    = { name = elastic_local_queue.racked.name }
  topology = { preferred = "cloud.provider.com/topology-rack" }
}
