package scenario

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// Environment variables that say where the executables are that were built; `make` sets them.
const (
	trainerVariable  = "ELASTIC_TRAINER_BIN"
	providerVariable = "TERRAFORM_PROVIDER_BIN"
)

// Tools are the executables that a scenario runs.
type Tools struct {
	Terraform string
	Provider  string // its file name is terraform-provider-elastic
	Trainer   string
}

// FindTools finds the provider and the trainer that `make build` built, and terraform on PATH.
func FindTools() (Tools, error) {
	var found Tools
	var providerErr, trainerErr, terraformErr error
	found.Provider, providerErr = FindBinary(providerVariable)
	found.Trainer, trainerErr = FindBinary(trainerVariable)
	if found.Terraform, terraformErr = exec.LookPath("terraform"); terraformErr != nil {
		terraformErr = fmt.Errorf("terraform is not on PATH (%w); install it from https://developer.hashicorp.com/terraform/install", terraformErr)
	}
	return found, errors.Join(providerErr, trainerErr, terraformErr)
}

// FindBinary is the executable that an environment variable names.
func FindBinary(variable string) (string, error) {
	path := os.Getenv(variable)
	if path == "" {
		return "", fmt.Errorf("$%s is not set; run this by make, which builds what is needed and sets it", variable)
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("$%s: %w; `make build` builds it", variable, err)
	}
	return path, nil
}
