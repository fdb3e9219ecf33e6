# By its namespace and name. What the cluster does not hold, such as wait_for, has its default then.
terraform import elastic_task.train team-a/train
