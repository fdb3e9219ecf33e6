# Between one and four workers. Workers above the minimum are preempted by higher-priority pods and recreated when there is
# capacity. The final model is bit-identical.
resource "elastic_training_job" "digits" {
  name  = "digits"
  image = "ghcr.io/elastic-training/elastic-trainer:0.1.0" # not published yet: use your own (make image)
  model = { name = "mnist" }                               # or { content = file("model.py") }: an unchanged ElasticDL model file

  data = {
    training         = "synthetic://digits?records=10000&seed=1" # or a path in the image or in a volume
    validation       = "synthetic://digits?records=2000&seed=2"
    records_per_task = 100
  }

  training = {
    epochs         = 2
    minibatch_size = 10
    grads_to_wait  = 4 # gradients averaged per step, however many workers compute them
  }

  master = {
    priority_class_name = elastic_priority_class.high.name
    resources           = { requests = { cpu = "1", memory = "1Gi" } }
  }

  workers = {
    min                 = 1
    max                 = 4
    priority_class_name = elastic_priority_class.low.name
    resources           = { requests = { cpu = "1", memory = "1Gi" } }
  }

  output     = "/output/digits"
  checkpoint = { interval_steps = 500, max_to_keep = 3 } # an interrupted job resumes from the newest intact checkpoint, with a bit-identical result
  evaluation = { interval_epochs = 1 }                   # results are in Events, the status and model.json
  volumes    = [{ name = "output", mount_path = "/output", claim_name = "models", mount_on = "master" }]
}

# One job per learning rate, with generated names: `digits-rate-` and five characters. Each may run for one hour; deletion may
# take up to 15 minutes.
resource "elastic_training_job" "rate" {
  for_each = toset(["0.1", "0.01"])

  generate_name           = "digits-rate-"
  image                   = "ghcr.io/elastic-training/elastic-trainer:0.1.0" # not published yet: use your own (make image)
  model                   = { name = "mnist" }
  data                    = { training = "synthetic://digits?records=1000&seed=1", records_per_task = 100 }
  training                = { minibatch_size = 10, learning_rate = tonumber(each.value) }
  active_deadline_seconds = 3600
  timeouts                = { delete = "15m" }

  master = { resources = { requests = { cpu = "500m", memory = "512Mi" } } }
  workers = {
    max              = 1
    resources        = { requests = { cpu = "500m", memory = "512Mi" } }
    security_context = { run_as_non_root = true, run_as_user = 1000, capabilities = { drop = ["ALL"] } }
  }
}

resource "elastic_priority_class" "low" {
  name  = "low-priority"
  value = 100
}

resource "elastic_priority_class" "high" {
  name  = "high-priority"
  value = 1000
}
