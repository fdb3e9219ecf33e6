# PyTorch scripts as elastic training jobs: mnist.py is the tutorial's network without its loop, loop.py is a loop with
# collectives of its own, and ddp.py is a script for torchrun. The Dockerfile builds the image.

terraform {
  required_version = ">= 1.8"
  required_providers {
    elastic = { source = "elastic-training/elastic" }
  }
}

provider "elastic" {
  config_path = "~/.kube/config"
}

resource "elastic_training_job" "pytorch" {
  name  = "pytorch"
  image = "registry.example.com/team/elastic-pytorch:1" # built from the Dockerfile
  model = { content = file("${path.module}/mnist.py") }

  data = {
    training         = "synthetic://digits?records=10000&seed=1"
    validation       = "synthetic://digits?records=2000&seed=2"
    records_per_task = 100
  }

  training = {
    epochs         = 1
    minibatch_size = 10
    grads_to_wait  = 4
  }

  # The master also applies the updates, in its own PyTorch process, and keeps a copy of the state; it needs no GPU.
  master = {
    resources = { requests = { cpu = "1", memory = "2Gi" }, limits = { memory = "2Gi" } }
  }

  workers = {
    command   = ["python3"]
    min       = 1
    max       = 4
    resources = { requests = { cpu = "2", memory = "4Gi" }, limits = { memory = "4Gi" } }
  }
}

resource "elastic_training_job" "loop" {
  name    = "loop"
  image   = "registry.example.com/team/elastic-pytorch:1"
  model   = { content = file("${path.module}/loop.py") }
  output  = "/output"
  volumes = [{ name = "output", mount_path = "/output", claim_name = "checkpoints", mount_on = "workers" }]

  data = {
    training         = "indices://waves?records=6000" # the length of the script's data set
    records_per_task = 100
  }

  training = {
    epochs         = 3
    minibatch_size = 50
    grads_to_wait  = 4
  }

  workers = {
    command   = ["python3"]
    elastic   = "collectives"
    min       = 1
    max       = 4
    resources = { requests = { cpu = "2", memory = "4Gi" }, limits = { memory = "4Gi" } }
  }
}

resource "elastic_training_job" "ddp" {
  name    = "ddp"
  image   = "registry.example.com/team/elastic-pytorch:1" # contains ddp.py
  volumes = [{ name = "state", mount_path = "/state", claim_name = "checkpoints", mount_on = "workers" }]

  workers = {
    command   = ["python3", "/app/ddp.py", "--directory", "/state"]
    elastic   = "restart"
    min       = 1
    max       = 4
    resources = { requests = { cpu = "2", memory = "4Gi" }, limits = { memory = "4Gi" } }

    termination_grace_period_seconds = 60 # the script has 55 s to write a checkpoint
  }
}
