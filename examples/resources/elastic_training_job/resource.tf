# One worker at least and four at most: the others are taken when somebody more important needs their room, and come back
# when there is room again. The model is the same, bit for bit.
resource "elastic_training_job" "digits" {
  name  = "digits"
  image = "ghcr.io/elastic-training/elastic-trainer:0.1.0"
  model = { name = "mnist" } # or { content = file("model.py") }: an ElasticDL model file, as it is

  data = {
    training         = "synthetic://digits?records=10000&seed=1" # or a path in the image or in a volume
    validation       = "synthetic://digits?records=2000&seed=2"
    records_per_task = 100
  }

  training = {
    epochs         = 2
    minibatch_size = 10
    grads_to_wait  = 4 # gradients added up for each step, however many workers compute them
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
  checkpoint = { interval_steps = 500, max_to_keep = 3 } # an interrupted job continues from the newest whole one, to the same bits
  evaluation = { interval_epochs = 1 }                   # of the validation data: Events, status and model.json tell the results
  volumes    = [{ name = "output", mount_path = "/output", claim_name = "models", mount_on = "master" }]
}

# One job for each learning rate, under names that are made: digits-rate- and five letters. Each has an hour, and an apply
# waits a quarter of one for it to be deleted.
resource "elastic_training_job" "rate" {
  for_each = toset(["0.1", "0.01"])

  generate_name           = "digits-rate-"
  image                   = "ghcr.io/elastic-training/elastic-trainer:0.1.0"
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
