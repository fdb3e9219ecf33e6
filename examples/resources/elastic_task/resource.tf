# A SkyPilot task file as it is: its labels name the queue and the priority class.
resource "elastic_task" "low" {
  name      = "low"
  namespace = "team-a" # that of the queue
  yaml      = file("${path.module}/low.yaml")
  wait_for  = "admitted"

  # The queue and the class are named in the file, where Terraform does not see them.
  depends_on = [elastic_local_queue.user_queue, elastic_workload_priority_class.low]
}

# The same by attributes, with what the file cannot say.
resource "elastic_task" "train" {
  name      = "train"
  namespace = "team-a"
  image     = "pytorch/pytorch:2.9.0-cuda13.0-cudnn9-runtime"
  queue = {
    name                    = elastic_local_queue.user_queue.name
    workload_priority_class = elastic_workload_priority_class.low.name
  }

  setup     = "pip install -r requirements.txt"
  run       = "torchrun --nnodes $SKYPILOT_NUM_NODES --node-rank $SKYPILOT_NODE_RANK --master-addr $(echo \"$SKYPILOT_NODE_IPS\" | head -n1) train.py"
  num_nodes = 2
  workdir = {
    "requirements.txt" = "datasets\n"
    "train.py"         = file("${path.module}/train.py")
  }

  accelerators = ["H100:8", "A100:8"] # in order of preference; toset([…]) for no preference
  cpus         = "32+"
  memory       = "256+"

  secrets            = { HF_TOKEN = { secret_name = "hugging-face", key = "token" } }
  secrets_wo         = { WANDB_API_KEY = var.wandb_api_key }
  secrets_wo_version = 1

  recovery = {
    max_restarts_on_errors = 3
    recover_on_exit_codes  = [33] # the program's own: a checkpoint was written, run again
  }
}

# On an accelerator that the provider does not know: what its nodes are marked with.
resource "elastic_task" "npu" {
  name         = "npu"
  run          = "train --device npu"
  accelerators = "W10:2"

  accelerator_labels = {
    W10 = {
      resource = "example.com/npu" # what a pod requests; nvidia.com/gpu by default
      labels   = { "example.com/npu" = ["w10"] }
    }
  }
}

# A container that fetches data first, without any rights, and an end after an hour at the latest.
resource "elastic_task" "fetched" {
  name                    = "fetched"
  run                     = "wc -w /data/words"
  active_deadline_seconds = 3600

  volumes = [{ name = "data", mount_path = "/data", empty_dir = {} }]
  init_containers = [{
    name          = "fetch"
    command       = ["sh", "-c", "echo one two three > /data/words"]
    volume_mounts = [{ name = "data", mount_path = "/data" }]
  }]

  security_context = {
    run_as_user                = 1000
    run_as_non_root            = true
    fs_group                   = 1000
    allow_privilege_escalation = false
    capabilities               = { drop = ["ALL"] }
    seccomp_profile            = { type = "RuntimeDefault" }
  }
}

# Through it the namespace's tasks reach a ClusterQueue, which has the quota: research is there already.
resource "elastic_local_queue" "user_queue" {
  name          = "user-queue"
  namespace     = "team-a"
  cluster_queue = "research"
}

resource "elastic_workload_priority_class" "low" {
  name  = "low-priority"
  value = 100
}

variable "wandb_api_key" {
  type      = string
  ephemeral = true
}
