// Package terraform stands in for Terraform's package of the same name.
package terraform
