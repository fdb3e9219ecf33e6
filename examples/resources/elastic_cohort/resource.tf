resource "elastic_resource_flavor" "t4" {
  name = "t4"
}

# A pool of four GPUs that belongs to no team, and that the queues of all teams may borrow from.
resource "elastic_cohort" "all_teams" {
  name = "all-teams"
  resource_groups = [{
    covered_resources = ["nvidia.com/gpu"]
    flavors = [{
      name      = elastic_resource_flavor.t4.name
      resources = [{ name = "nvidia.com/gpu", nominal_quota = "4" }]
    }]
  }]
}

# A branch of the tree: its queues borrow from one another, and at most two GPUs from the rest.
resource "elastic_cohort" "vision" {
  name        = "vision"
  parent_name = elastic_cohort.all_teams.name
  resource_groups = [{
    covered_resources = ["nvidia.com/gpu"]
    flavors = [{
      name      = elastic_resource_flavor.t4.name
      resources = [{ name = "nvidia.com/gpu", nominal_quota = "0", borrowing_limit = "2" }]
    }]
  }]
}
