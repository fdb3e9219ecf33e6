# An unchanged SkyPilot task file: its labels name the queue and the priority class.
resource "elastic_task" "low" {
  name      = "low"
  namespace = "team-a" # that of the queue
  yaml      = file("${path.module}/low.yaml")
  wait_for  = "admitted"

  # The queue and the class are named in the file, where Terraform does not see them.
  depends_on = [elastic_local_queue.user_queue, elastic_workload_priority_class.low]
}

# The same task with attributes, and with settings that the file cannot contain.
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
    recover_on_exit_codes  = [33] # the program's exit code after it has written a checkpoint: run again
  }
}

# Nodes whose command can join the others again: if one is lost, the commands of the others are not started again.
resource "elastic_task" "rejoining" {
  name  = "rejoining"
  image = "pytorch/pytorch:2.9.0-cuda13.0-cudnn9-runtime"

  num_nodes = 4
  rejoin    = true
  recovery  = { max_restarts_on_errors = 3 } # failures of commands; lost pods are not counted
  run       = <<-EOT
    torchrun --nnodes $SKYPILOT_NUM_NODES --max-restarts 3 --rdzv-id $SKYPILOT_TASK_ID \
      --rdzv-backend c10d --rdzv-endpoint "$(echo "$SKYPILOT_NODE_IPS" | head -n1):29400" train.py
  EOT
}

# With an accelerator that the provider's table does not contain: its resource and node labels.
resource "elastic_task" "npu" {
  name         = "npu"
  run          = "train --device npu"
  accelerators = "W10:2"

  accelerator_labels = {
    W10 = {
      resource = "example.com/npu" # resource that a pod requests; nvidia.com/gpu by default
      labels   = { "example.com/npu" = ["w10"] }
    }
  }
}

# An unprivileged init container that fetches data, and a time limit of one hour.
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

# The namespace's tasks use the quota of a ClusterQueue through this queue; the ClusterQueue research already exists.
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
