// Package providertest runs the provider for acceptance tests: the provider in the test's own process, with the real
// terraform. The environment and the home directory of the test process do not reach the provider, and terraform
// downloads nothing. The tests start the clusters.
package providertest

import (
	"cmp"
	"os"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/elastic-training/terraform-provider-elastic/internal/provider"
)

// Version is what the provider calls itself.
const Version = "test"

// Prepare is called once, before any test: it finds terraform, and keeps it and plugin-testing from downloading another
// one or asking whether there is one.
func Prepare() error {
	for name, value := range map[string]string{"CHECKPOINT_DISABLE": "1", "TF_CLI_CONFIG_FILE": os.DevNull} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	c, err := theCommandLine()
	if err != nil {
		return err
	}
	for name, value := range map[string]string{"TF_ACC_TERRAFORM_PATH": c.path, "TF_ACC_PROVIDER_HOST": c.registry()} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return nil
}

// Factories serve the provider with these environment variables and no others. HOME is also what ~ stands for.
func Factories(t *testing.T, variables map[string]string) map[string]func() (tfprotov6.ProviderServer, error) {
	t.Helper()
	environment := provider.Environment{
		Variable:         func(name string) string { return variables[name] },
		HomeDirectory:    cmp.Or(variables["HOME"], t.TempDir()),
		WorkingDirectory: t.TempDir(),
	}
	return map[string]func() (tfprotov6.ProviderServer, error){
		"elastic": providerserver.NewProtocol6WithError(provider.New(Version, environment)()),
	}
}
