# Before a job is made: would it start, and whom would it evict?
data "elastic_forecast" "training" {
  name = "high-prio-job"
  pods = [
    { name = "master", requests = { cpu = "1", memory = "1Gi" }, priority_class_name = "high-priority" },
    # Made when the master runs. One is enough; the others come when there is room.
    { name = "worker", count = 4, min = 1, starts_after_previous = true, requests = { cpu = "3", memory = "4Gi" }, priority_class_name = "high-priority" },
  ]
}

# A check is evaluated at every plan and apply, and is a warning where it fails. Where no forecast can be made the lists
# are null, and the check fails too.
check "evicts_no_production" {
  assert {
    condition = data.elastic_forecast.training.available && alltrue([
      for v in coalesce(data.elastic_forecast.training.victims, []) : v.namespace != "production"
    ])
    error_message = coalesce(data.elastic_forecast.training.text, data.elastic_forecast.training.reason)
  }
}

output "victims" {
  description = "Who would make room, and what would become of them."
  value       = { for v in coalesce(data.elastic_forecast.training.victims, []) : "${v.namespace}/${v.name}" => v.outcome }
}
