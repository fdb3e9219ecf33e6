# The state, which has to be where every run finds it: here in a Secret of the cluster, tfstate-default-research.
# KUBE_CONFIG_PATH is its environment variable too. Any other backend does as well.

terraform {
  backend "kubernetes" {
    namespace     = "team-research"
    secret_suffix = "research"
  }
}
