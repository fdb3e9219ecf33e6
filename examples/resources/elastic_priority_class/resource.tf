# kube-scheduler removes pods of the lower class where one of the higher class has no room.
resource "elastic_priority_class" "low" {
  name        = "low-priority"
  value       = 100
  description = "Workers: may be preempted at any time."
}

resource "elastic_priority_class" "high" {
  name              = "high-priority"
  value             = 1000
  preemption_policy = "PreemptLowerPriority" # the default; Never waits for room instead
  description       = "Masters, and jobs that cannot wait."
}
