# As many resources as in provider_objects.tf, with the same references, of the kind that is built into Terraform.

resource "terraform_data" "priority_class" {
  count = 125
  input = { name = "bench-${count.index}", value = 1000 + count.index, description = "A class." }
}

resource "terraform_data" "workload_priority_class" {
  count = 125
  input = { name = "bench-${count.index}", value = 1000 + count.index, description = "A class." }
}

resource "terraform_data" "resource_flavor" {
  count = 125
  input = { name = "bench-${count.index}", node_labels = { pool = "bench-${count.index}" } }
}

resource "terraform_data" "topology" {
  count = 125
  input = { name = "bench-${count.index}", levels = [{ node_label = "rack" }, { node_label = "kubernetes.io/hostname" }] }
}

resource "terraform_data" "admission_check" {
  count = 125
  input = { name = "bench-${count.index}", controller_name = "example.com/bench" }
}

resource "terraform_data" "cohort" {
  count = 125
  input = { name = "bench-${count.index}" }
}

resource "terraform_data" "cluster_queue" {
  count = 125
  input = {
    name               = "bench-${count.index}"
    cohort_name        = terraform_data.cohort[count.index].output.name
    namespace_selector = {}
    resource_groups = [{
      covered_resources = ["cpu", "memory"]
      flavors = [{
        name = terraform_data.resource_flavor[count.index].output.name
        resources = [
          { name = "cpu", nominal_quota = "10", borrowing_limit = "5" },
          { name = "memory", nominal_quota = "40Gi", borrowing_limit = "20Gi" },
        ]
      }]
    }]
    preemption = { within_cluster_queue = "LowerPriority" }
  }
}

resource "terraform_data" "local_queue" {
  count = 125
  input = { name = "bench-${count.index}", namespace = "default", cluster_queue = terraform_data.cluster_queue[count.index].output.name }
}
