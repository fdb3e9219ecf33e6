# The Workloads of all namespaces, and the reason why each one waits.
data "elastic_workloads" "all" {}

output "waiting" {
  description = "The waiting Workloads, in the order in which their queue considers them."
  value = {
    for w in data.elastic_workloads.all.workloads : "${w.namespace}/${w.name}" => { position = w.position, why = w.message }
    if w.phase == "Pending"
  }
}
