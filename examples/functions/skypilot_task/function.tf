locals {
  low = provider::elastic::skypilot_task(<<-EOT
    resources:
      accelerators: T4:4
      labels:
        kueue.x-k8s.io/queue-name: user-queue
        kueue.x-k8s.io/priority-class: low-priority

    run: |
      echo "hi i'm a low priority job"
      sleep 1000000
  EOT
  )
}

# The same task in another queue, with more memory.
resource "elastic_task" "low" {
  name         = "low"
  run          = local.low.run
  accelerators = local.low.accelerators
  memory       = "32+"
  queue        = { name = "night-queue", workload_priority_class = local.low.queue.workload_priority_class }
}
