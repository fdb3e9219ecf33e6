# Would a job start if it were created, and which pods would it evict?
data "elastic_forecast" "training" {
  name = "high-prio-job"
  pods = [
    { name = "master", requests = { cpu = "1", memory = "1Gi" }, priority_class_name = "high-priority" },
    # Created when the master runs. The job needs one worker; the others start when there is capacity.
    { name = "worker", count = 4, min = 1, starts_after_previous = true, requests = { cpu = "3", memory = "4Gi" }, priority_class_name = "high-priority" },
  ]
}

# A check is evaluated at every plan and apply; a failed check is a warning. If no forecast is possible, the lists are null,
# and the check fails too.
check "evicts_no_production" {
  assert {
    condition = data.elastic_forecast.training.available && alltrue([
      for v in coalesce(data.elastic_forecast.training.victims, []) : v.namespace != "production"
    ])
    error_message = coalesce(data.elastic_forecast.training.text, data.elastic_forecast.training.reason)
  }
}

output "victims" {
  description = "The pods that would be evicted, and the effect on their jobs."
  value       = { for v in coalesce(data.elastic_forecast.training.victims, []) : "${v.namespace}/${v.name}" => v.outcome }
}
