# By its namespace and name.
terraform import elastic_local_queue.user_queue team-a/user-queue
