# kube-scheduler preempts pods of the lower class if there is no capacity for a pod of the higher class.
resource "elastic_priority_class" "low" {
  name        = "low-priority"
  value       = 100
  description = "Workers: may be preempted at any time."
}

resource "elastic_priority_class" "high" {
  name              = "high-priority"
  value             = 1000
  preemption_policy = "PreemptLowerPriority" # the default; with Never, pods wait instead
  description       = "Masters, and jobs that cannot wait."
}
