// The stand-in for every one of Terraform's modules of a remote backend; the folders beside it are links to it.
module standin/backend

go 1.26.0
