package provider_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
	"github.com/elastic-training/terraform-provider-elastic/internal/provider"
)

const examples = "../../examples"

// requiredProvider is for examples that only show one thing, where the user's own configuration has it.
const requiredProvider = "terraform {\n  required_providers {\n    elastic = { source = \"elastic-training/elastic\" }\n  }\n}\n"

// exampleFolders are those that hold configurations, below examples/.
func exampleFolders(t *testing.T) []string {
	t.Helper()
	var folders []string
	err := filepath.WalkDir(examples, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".tf" && entry.Type().IsRegular() {
			folder, err := filepath.Rel(examples, filepath.Dir(path))
			if err != nil {
				return err
			}
			folders = append(folders, folder)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(slices.Compact(folders), func(folder string) bool { return filepath.Dir(folder) == "actions" }) // newer terraform's
}

// TestEveryExampleIsValid also calls the functions, which a validation does not: their values are inputs of resources.
func TestEveryExampleIsValid(t *testing.T) {
	r := providertest.NewTerminal(t)
	if err := os.CopyFS(r.Directory, os.DirFS(examples)); err != nil { // whole: some read files of their neighbours
		t.Fatal(err)
	}
	for _, folder := range exampleFolders(t) {
		t.Run(folder, func(t *testing.T) {
			in := *r
			in.Directory = filepath.Join(r.Directory, folder)
			config, command := requiredProvider, "validate"
			switch {
			case filepath.Dir(folder) == "functions":
				config, command = requiredProvider+asAdmin(""), "plan"
				if err := os.CopyFS(in.Directory, os.DirFS(filepath.Join(examples, "models"))); err != nil { // which some say they read
					t.Fatal(err)
				}
			case folder == "provider": // the first page's, which stands in provider.tf and is whole
				config = ""
			}
			if text, err := os.ReadFile(filepath.Join(in.Directory, "main.tf")); err == nil {
				config = string(text)
			}
			if strings.Contains(config, `"hashicorp/`) {
				t.Skip("it needs other providers, which come from a registry")
			}
			if strings.Contains(config, "\nmodule ") { // of these examples: nothing is downloaded
				if printed, code := in.Run(t, config, "init", "-backend=false"); code != 0 {
					t.Fatalf("init exited with %d:\n%s", code, printed)
				}
			}
			if printed, code := in.Run(t, config, command); code != 0 {
				t.Errorf("%s exited with %d:\n%s", command, code, printed)
			}
		})
	}
}

func TestEverythingThatTheProviderHasHasAnExample(t *testing.T) {
	p := provider.New(providertest.Version, provider.Environment{})()
	ctx := t.Context()
	var wanted []string
	for _, newResource := range p.Resources(ctx) {
		resp := &resource.MetadataResponse{}
		newResource().Metadata(ctx, resource.MetadataRequest{ProviderTypeName: provider.TypeName}, resp)
		wanted = append(wanted, filepath.Join("resources", resp.TypeName))
	}
	for _, newData := range p.DataSources(ctx) {
		resp := &datasource.MetadataResponse{}
		newData().Metadata(ctx, datasource.MetadataRequest{ProviderTypeName: provider.TypeName}, resp)
		wanted = append(wanted, filepath.Join("data-sources", resp.TypeName))
	}
	for _, newFunction := range p.(interface { //nolint:forcetypeassert // the provider says itself that it has functions
		Functions(ctx context.Context) []func() function.Function
	}).Functions(ctx) {
		resp := &function.MetadataResponse{}
		newFunction().Metadata(ctx, function.MetadataRequest{}, resp)
		wanted = append(wanted, filepath.Join("functions", resp.Name))
	}
	folders := exampleFolders(t)
	for _, folder := range wanted {
		if !slices.Contains(folders, folder) {
			t.Errorf("examples/%s has no example", folder)
		}
	}
}
