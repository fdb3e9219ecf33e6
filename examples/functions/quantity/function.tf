# "3" and "1Gi": the spelling in which the API server keeps an amount.
output "cpu" {
  value = provider::elastic::quantity("3000m")
}

output "memory" {
  value = provider::elastic::quantity("1024Mi")
}
