# Import by namespace and name. Attributes that are not stored in the cluster, such as wait_for, get their defaults.
terraform import elastic_training_job.digits default/digits
