# By its name.
terraform import elastic_admission_check.provisioned provisioned
