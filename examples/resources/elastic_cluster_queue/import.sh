# By its name.
terraform import elastic_cluster_queue.research research
