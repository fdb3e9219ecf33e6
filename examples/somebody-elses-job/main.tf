# A RayJob and a TrainJob that KubeRay and Kubeflow Trainer run. plan.yml forecasts them in every pull request. Neither needs the
# provider or the trainer of this project.

terraform {
  required_version = ">= 1.8"
  required_providers {
    kubernetes = {
      source  = "hashicorp/kubernetes"
      version = "~> 2.38"
    }
  }
}

provider "kubernetes" {} # the environment variable KUBE_CONFIG_PATH selects the cluster

resource "kubernetes_manifest" "batch_inference" {
  manifest = yamldecode(file("${path.module}/rayjob.yaml"))
}

resource "kubernetes_manifest" "fine_tuning" {
  manifest = yamldecode(file("${path.module}/trainjob.yaml"))
}
