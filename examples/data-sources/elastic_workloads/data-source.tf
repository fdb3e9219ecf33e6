# What `kubectl get workloads` shows, and why each one waits.
data "elastic_workloads" "all" {}

output "waiting" {
  description = "The workloads that wait, in the order in which their queue tries them."
  value = {
    for w in data.elastic_workloads.all.workloads : "${w.namespace}/${w.name}" => { position = w.position, why = w.message }
    if w.phase == "Pending"
  }
}
