# A PyTorch script as an elastic training job. mnist.py is the tutorial's network; Dockerfile makes the image.

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
  image = "registry.example.com/team/elastic-pytorch:1" # made of ./Dockerfile
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

  # The master applies updates as the workers do, with a framework of its own in memory; it needs no accelerator.
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
