# The command of ElasticDL's tutorial, as it stands there.
locals {
  low = provider::elastic::elasticdl_args(<<-EOT
    python elasticdl/python/elasticdl/client/client.py \
        --job_name=low-prio-job \
        --model_file=elasticdl/python/examples/mnist_functional_api.py \
        --train_data_dir=/data/mnist/train \
        --master_pod_priority=high-priority \
        --worker_pod_priority=low-priority \
        --num_epoch=1 \
        --minibatch_size=10 \
        --record_per_task=100 \
        --num_worker=2 \
        --master_cpu_request=1000m \
        --master_cpu_limit=1000m \
        --master_memory_request=1024Mi \
        --master_memory_limit=1024Mi \
        --worker_cpu_request=3000m \
        --worker_cpu_limit=3000m \
        --worker_memory_request=4096Mi \
        --worker_memory_limit=4096Mi \
        --grads_to_wait=2 \
        --codec_type=bytes \
        --repository=gcr.io \
        --image_base=gcr.io/elasticdl/elasticdl:dev
  EOT
  )
}

resource "elastic_training_job" "low" {
  name     = local.low.name
  image    = local.low.image
  model    = { content = file("${path.module}/${basename(local.low.model_file)}") } # examples/models/mnist_functional_api.py
  data     = local.low.data
  training = local.low.training
  master   = local.low.master
  workers  = local.low.workers
  volumes  = local.low.volumes # PersistentVolumeClaim fileserver-claim at /data; the trainer's image contains no records
}

# The plan reports the flags that cannot have the meaning that they had, and what takes their place.
check "flags_of_low" {
  assert {
    condition     = length(local.low.notices) == 0
    error_message = join("\n", local.low.notices)
  }
}
