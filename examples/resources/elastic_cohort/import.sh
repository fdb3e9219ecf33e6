# By its name.
terraform import elastic_cohort.all_teams all-teams
