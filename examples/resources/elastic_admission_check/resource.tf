# Before a workload runs, nodes are provisioned for all of its pods at once.
resource "elastic_admission_check" "provisioned" {
  name            = "provisioned"
  controller_name = "kueue.x-k8s.io/provisioning-request"
  parameters = {
    api_group = "kueue.x-k8s.io"
    kind      = "ProvisioningRequestConfig"
    name      = "dws-config"
  }
}

resource "elastic_cluster_queue" "dws" {
  name                      = "dws"
  namespace_selector        = {}
  admission_checks_strategy = { admission_checks = [{ name = elastic_admission_check.provisioned.name }] }
}
