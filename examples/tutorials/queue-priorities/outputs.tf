# Only what stays the same: an output of something live would be a change at every plan. The folder workloads/ asks the
# queue.

output "watch" {
  description = "How to look at the queue and at the tasks' pods."
  value = {
    workloads = "kubectl get workloads -n ${var.namespace}"
    pods      = "kubectl get pods -n ${var.namespace}"
  }
}
