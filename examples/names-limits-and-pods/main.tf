# Generated names, time limits and pod settings of jobs and tasks: the guide "Names, time limits and pod settings" explains it.
terraform {
  required_version = ">= 1.8"
  required_providers {
    elastic = { source = "elastic-training/elastic" }
  }
}

provider "elastic" {
  config_path = "~/.kube/config"
}

resource "elastic_training_job" "rate" {
  for_each = { fast = 0.1, slow = 0.01 }

  generate_name = "rate-${each.key}-"
  image         = "ghcr.io/elastic-training/elastic-trainer:0.1.0" # not published yet: use your own (make image)
  model         = { name = "mnist" }
  data          = { training = "synthetic://digits?records=1000&seed=1", records_per_task = 100 }
  training      = { minibatch_size = 10, learning_rate = each.value }

  active_deadline_seconds = 3600

  master = {
    resources        = { requests = { cpu = "500m", memory = "512Mi" } }
    security_context = { run_as_non_root = true, run_as_user = 1000, fs_group = 1000 }
  }

  workers = {
    max                              = 1
    resources                        = { requests = { cpu = "500m", memory = "512Mi" } }
    termination_grace_period_seconds = 60
    security_context = {
      run_as_non_root            = true
      run_as_user                = 1000
      allow_privilege_escalation = false
      capabilities               = { drop = ["ALL"] }
      seccomp_profile            = { type = "RuntimeDefault" }
    }
  }

  timeouts = { create = "15m", delete = "5m" }
}

resource "elastic_task" "report" {
  generate_name              = "report-"
  run                        = "wc -w /data/words"
  ttl_seconds_after_finished = 86400
  active_deadline_seconds    = 600
  security_context           = { run_as_user = 1000 }

  volumes = [{ name = "data", mount_path = "/data", empty_dir = {} }]
  init_containers = [{
    name          = "fetch"
    command       = ["sh", "-c", "echo one two three > /data/words"]
    volume_mounts = [{ name = "data", mount_path = "/data" }]
  }]
}

output "jobs" {
  value = { for key, job in elastic_training_job.rate : key => job.name }
}
