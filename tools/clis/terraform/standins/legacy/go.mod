// The stand-in for a module that only a test of Terraform imports, for go mod tidy.
module standin/legacy

go 1.26.0
