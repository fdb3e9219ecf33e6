package provider_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
)

// TestEveryActionAndListResourceHasAnExampleThatIsValid reads the blocks that terraform supports from 1.14 on, which
// the installed version may not: their configuration must have the required attributes of the schema, and no unknown
// ones.
func TestEveryActionAndListResourceHasAnExampleThatIsValid(t *testing.T) {
	schemas := providertest.NewServer(t, nil).Schemas
	actions := map[string]*tfprotov6.Schema{}
	for name, a := range schemas.ActionSchemas {
		actions[name] = a.Schema
	}
	for _, kind := range []struct {
		folder, file, block string
		schemas             map[string]*tfprotov6.Schema
	}{
		{"actions", "action.tf", "action", actions},
		{"list-resources", "list-resource.tfquery.hcl", "list", schemas.ListResourceSchemas},
	} {
		if len(kind.schemas) == 0 {
			t.Errorf("the provider has no %s", kind.folder)
		}
		for name, schema := range kind.schemas {
			t.Run(kind.folder+"/"+name, func(t *testing.T) {
				text, err := os.ReadFile(filepath.Join(examples, kind.folder, name, kind.file))
				if err != nil {
					t.Fatal(err)
				}
				file, problems := hclparse.NewParser().ParseHCL(text, kind.file)
				if problems.HasErrors() {
					t.Fatal(problems)
				}
				found := false
				for _, block := range file.Body.(*hclsyntax.Body).Blocks { //nolint:forcetypeassert // what the parser of this syntax gives
					if block.Type == kind.block && block.Labels[0] == name {
						found = true
						checkConfig(t, block, schema)
					}
				}
				if !found {
					t.Errorf("it has no block %s %q", kind.block, name)
				}
			})
		}
	}
}

func checkConfig(t *testing.T, block *hclsyntax.Block, schema *tfprotov6.Schema) {
	t.Helper()
	given := map[string]hcl.Range{}
	for _, inner := range block.Body.Blocks {
		if inner.Type != "config" {
			t.Errorf("%s: a block %q", inner.Range(), inner.Type)
			continue
		}
		for name, attribute := range inner.Body.Attributes {
			given[name] = attribute.SrcRange
		}
	}
	known := map[string]bool{}
	for _, a := range schema.Block.Attributes {
		known[a.Name] = true
		if _, there := given[a.Name]; a.Required && !there {
			t.Errorf("%s: %s is missing", block.Range(), a.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !known[name] {
			t.Errorf("%s: there is no attribute %s", given[name], name)
		}
	}
}
