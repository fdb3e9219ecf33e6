// Package documents compares the commands and the Terraform configuration in the repository's documents with the flags
// of the programs and the schemas of the provider. Tests in the repository's root check links, paths and names, and the
// commands of programs that this module does not link.
package documents

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/elastic-training/terraform-provider-elastic/internal/doccheck"
	"github.com/elastic-training/terraform-provider-elastic/internal/provider"
	simcluster "github.com/elastic-training/terraform-provider-elastic/simcluster/command"
)

const root = "../.."

func documentsOf(t *testing.T) []doccheck.Document {
	t.Helper()
	read, err := doccheck.Read(root)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func TestEveryCommandOfADocumentIsOneThatItsProgramKnows(t *testing.T) {
	for program, check := range map[string]func(doccheck.Command) error{
		"simcluster": func(c doccheck.Command) error { return c.CheckAgainst(simcluster.NewRoot()) },
		"terraform":  checkTerraform,
	} {
		t.Run(program, func(t *testing.T) {
			seen := 0
			for _, d := range documentsOf(t) {
				commands, err := d.Commands(program)
				if err != nil {
					t.Error(err)
				}
				for _, c := range commands {
					seen++
					if err := check(c); err != nil {
						t.Errorf("%s: %s: %v", c.Where, c, err)
					}
				}
			}
			if seen == 0 {
				t.Errorf("no document has a command of %s", program)
			}
		})
	}
}

// inFolder is how a command names the folder of its configuration.
const inFolder = "-chdir="

// checkTerraform wants a folder that is there, and variables that its configuration declares. What is typed in a
// reader's own folder cannot be checked.
func checkTerraform(c doccheck.Command) error {
	folder := c.Folder
	var given []string
	for i, argument := range c.Arguments {
		switch {
		case strings.HasPrefix(argument, inFolder):
			folder = filepath.Join(c.Folder, strings.TrimPrefix(argument, inFolder))
		case argument == "-var" && i+1 < len(c.Arguments):
			given = append(given, c.Arguments[i+1])
		}
	}
	if folder == "." {
		return nil
	}
	bodies, err := configuration(filepath.Join(root, folder))
	if err != nil {
		return err
	}
	if len(bodies) == 0 && !c.Whole {
		return nil // spoken of, for the examples below this folder
	}
	if len(bodies) == 0 {
		return fmt.Errorf("%s has no configuration", folder)
	}
	var declared []string
	for _, body := range bodies {
		for _, block := range body.Blocks {
			if block.Type == "variable" {
				declared = append(declared, block.Labels[0])
			}
		}
	}
	for _, variable := range given {
		if name, _, _ := strings.Cut(variable, "="); !slices.Contains(declared, name) {
			return fmt.Errorf("%s has no variable %s", folder, name)
		}
	}
	return nil
}

// configuration parses the files of a folder.
func configuration(folder string) ([]*hclsyntax.Body, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.tf"))
	if err != nil {
		return nil, err
	}
	var bodies []*hclsyntax.Body
	parsed := hclparse.NewParser()
	for _, path := range files {
		file, diagnostics := parsed.ParseHCLFile(path)
		if diagnostics.HasErrors() {
			return nil, diagnostics
		}
		bodies = append(bodies, file.Body.(*hclsyntax.Body))
	}
	return bodies, nil
}

// function finds the provider's functions in a configuration.
var function = regexp.MustCompile(`provider::elastic::(\w+)`)

func TestConfigurationInDocumentsHasAttributesThatTheProviderKnows(t *testing.T) {
	schemas := schemasOf(t)
	seen := map[string]int{}
	for _, d := range documentsOf(t) {
		for _, block := range d.Blocks() {
			if block.Language != "hcl" && block.Language != "terraform" {
				continue
			}
			file, diagnostics := hclsyntax.ParseConfig([]byte(block.Text), d.Path, hcl.Pos{Line: block.Line, Column: 1})
			if diagnostics.HasErrors() {
				t.Error(diagnostics)
				continue
			}
			for _, b := range file.Body.(*hclsyntax.Body).Blocks {
				attributes, is := schemas.of(b)
				if !is {
					continue
				}
				seen[b.Type]++
				for _, problem := range attributes.unknown(b.Body) {
					t.Error(problem)
				}
			}
			for _, m := range function.FindAllStringSubmatch(block.Text, -1) {
				seen["function"]++
				if schemas.Functions[m[1]] == nil {
					t.Errorf("%s:%d: the provider has no function %s", d.Path, block.Line, m[1])
				}
			}
		}
	}
	for _, kind := range []string{"provider", "resource", "data", "function"} {
		if seen[kind] == 0 {
			t.Errorf("no document shows a %s; does this test still find them?", kind)
		}
	}
}

// The tutorials' guides explain the examples, line by line, and so show no others.
func TestTheTutorialsShowTheExamplesOwnLines(t *testing.T) {
	for _, name := range []string{"elastic-scheduling", "queue-priorities"} {
		t.Run(name, func(t *testing.T) {
			guide, err := doccheck.Open(root, filepath.Join(root, "templates/guides", name+".md"))
			if err != nil {
				t.Fatal(err)
			}
			example := filepath.Join(root, "examples/tutorials", name)
			lines := map[string]bool{"": true, "# …": true}
			for _, pattern := range []string{"*.tf", "*/*.tf", "*.yaml"} {
				paths, err := filepath.Glob(filepath.Join(example, pattern))
				if err != nil {
					t.Fatal(err)
				}
				for _, path := range paths {
					file, err := doccheck.Open(root, path)
					if err != nil {
						t.Fatal(err)
					}
					for _, line := range strings.Split(file.Text, "\n") {
						lines[strings.TrimSpace(line)] = true
					}
				}
			}
			seen := 0
			for _, block := range guide.Blocks() {
				if block.Language != "hcl" && block.Language != "yaml" {
					continue
				}
				for i, line := range strings.Split(block.Text, "\n") {
					seen++
					if !lines[strings.TrimSpace(line)] {
						t.Errorf("%s:%d is in no file of %s: %s", guide.Path, block.Line+i, example, line)
					}
				}
			}
			if seen == 0 {
				t.Error("the guide shows no configuration")
			}
		})
	}
}

// schemas are what the provider says of itself.
type schemas struct {
	*tfprotov6.GetProviderSchemaResponse
}

func schemasOf(t *testing.T) schemas {
	t.Helper()
	nothing := provider.Environment{Variable: func(string) string { return "" }}
	server, err := providerserver.NewProtocol6WithError(provider.New("test", nothing)())()
	if err != nil {
		t.Fatal(err)
	}
	response, err := server.GetProviderSchema(context.Background(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range response.Diagnostics {
		t.Fatalf("%s: %s", d.Summary, d.Detail)
	}
	return schemas{response}
}

// of are the attributes of a block that is the provider's, to be configured or to be read.
func (s schemas) of(b *hclsyntax.Block) (attributes, bool) {
	mine := len(b.Labels) > 0 && (b.Labels[0] == "elastic" || strings.HasPrefix(b.Labels[0], "elastic_"))
	if !mine {
		return nil, false
	}
	var schema *tfprotov6.Schema
	switch b.Type {
	case "provider":
		schema = s.Provider
	case "resource":
		schema = s.ResourceSchemas[b.Labels[0]]
	case "data":
		schema = s.DataSourceSchemas[b.Labels[0]]
	default:
		return nil, false
	}
	if schema == nil {
		return attributes{}, true // of which all are unknown
	}
	known := attributesOf(schema.Block.Attributes)
	for _, block := range schema.Block.BlockTypes {
		known[block.TypeName] = attributesOf(block.Block.Attributes)
	}
	// Terraform's own.
	for _, name := range []string{"count", "for_each", "depends_on", "provider", "lifecycle"} {
		known[name] = nil
	}
	return known, true
}

// attributes are names, and for objects their attributes; nil for what is no object or has keys of its own.
type attributes map[string]attributes

func attributesOf(all []*tfprotov6.SchemaAttribute) attributes {
	known := attributes{}
	for _, a := range all {
		known[a.Name] = nil
		if a.NestedType != nil && a.NestedType.Nesting != tfprotov6.SchemaObjectNestingModeMap {
			known[a.Name] = attributesOf(a.NestedType.Attributes)
		}
	}
	return known
}

// unknown reports which attributes and blocks of a body are not among these, at any depth.
func (known attributes) unknown(body *hclsyntax.Body) []string {
	var problems []string
	for name, a := range body.Attributes {
		problems = append(problems, known.problems(name, a.Expr)...)
	}
	for _, b := range body.Blocks {
		within, is := known[b.Type]
		if !is {
			problems = append(problems, known.problem(b.Type, b.Range()))
		} else if within != nil {
			problems = append(problems, within.unknown(b.Body)...)
		}
	}
	return problems
}

func (known attributes) problem(name string, at hcl.Range) string {
	return fmt.Sprintf("%s:%d: there is no %s; there are %s", at.Filename, at.Start.Line, name, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
}

// problems are those of one attribute and of the objects within its value.
func (known attributes) problems(name string, value hclsyntax.Expression) []string {
	within, is := known[name]
	if !is {
		return []string{known.problem(name, value.Range())}
	}
	if within == nil {
		return nil
	}
	var found []string
	switch v := value.(type) {
	case *hclsyntax.TupleConsExpr:
		for _, element := range v.Exprs {
			found = append(found, known.problems(name, element)...)
		}
	case *hclsyntax.ObjectConsExpr:
		for _, item := range v.Items {
			if key := hcl.ExprAsKeyword(item.KeyExpr); key != "" {
				found = append(found, within.problems(key, item.ValueExpr)...)
			}
		}
	}
	return found
}
