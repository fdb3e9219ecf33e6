package providertest

import (
	"cmp"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/go-version"
)

// commandLine is the program that the tests run as `terraform`: the first of that name on PATH, which may be OpenTofu.
type commandLine struct {
	path     string
	opentofu bool
	version  *version.Version
}

// theCommandLine is looked for once.
var theCommandLine = sync.OnceValues(func() (commandLine, error) {
	path, err := exec.LookPath("terraform")
	if err != nil {
		return commandLine{}, fmt.Errorf("the provider's acceptance tests need terraform in PATH: %w", err)
	}
	return identify(path)
})

var versionLine = regexp.MustCompile(`(?m)^(Terraform|OpenTofu) v([0-9][^\s]*)`)

// identify runs a program to find out what it is.
func identify(path string) (commandLine, error) {
	printed, err := exec.Command(path, "version").Output() //nolint:noctx // it prints and ends
	if err != nil {
		return commandLine{}, fmt.Errorf("%s version: %w", path, err)
	}
	match := versionLine.FindStringSubmatch(string(printed)) // after warnings about the user's own settings
	if match == nil {
		return commandLine{}, fmt.Errorf("%s version names neither Terraform nor OpenTofu: %s", path, printed)
	}
	name, number := match[1], match[2]
	parsed, err := version.NewVersion(number)
	if err != nil {
		return commandLine{}, fmt.Errorf("%s version: %w", path, err)
	}
	return commandLine{path: path, opentofu: name == "OpenTofu", version: parsed.Core()}, nil
}

func (c commandLine) String() string {
	if c.opentofu {
		return "OpenTofu " + c.version.String()
	}
	return "Terraform " + c.version.String()
}

// The registries of which the two programs take providers that are named without one.
const (
	terraformRegistry = "registry.terraform.io"
	opentofuRegistry  = "registry.opentofu.org"
)

func (c commandLine) registry() string {
	if c.opentofu {
		return opentofuRegistry
	}
	return terraformRegistry
}

// Registry is where the command line looks for a provider that is named without a registry.
func Registry(t *testing.T) string {
	t.Helper()
	c, err := theCommandLine()
	if err != nil {
		t.Fatal(err)
	}
	return c.registry()
}

// Feature is what only some command lines can do.
type Feature struct {
	Name string
	// The first release of each that can; "" for none.
	Terraform, OpenTofu string
}

// What the provider has for newer command lines than the oldest that it supports.
var (
	Ephemeral        = Feature{"ephemeral input variables", "1.10", "1.11"}
	WriteOnly        = Feature{"write-only attributes (`secrets_wo`)", "1.11", "1.11"}
	ImportByIdentity = Feature{"import by identity (`import { identity = … }`)", "1.12", "1.12"}
	Query            = Feature{"list resources (`terraform query`)", "1.14", ""}
	Actions          = Feature{"actions (`terraform apply -invoke`, `action_trigger`)", "1.14", ""}
)

// Features are those that the compatibility table lists.
var Features = []Feature{
	{"resources, data sources, import by ID", "1.8", "1.12"},
	{"provider functions (`provider::elastic::…`)", "1.8", "1.12"},
	{"`moved` from resources of hashicorp/kubernetes", "1.8", "1.12"},
	Ephemeral, WriteOnly, ImportByIdentity, Query, Actions,
}

// in reports whether a command line has a feature.
func (f Feature) in(c commandLine) bool {
	first := f.Terraform
	if c.opentofu {
		first = f.OpenTofu
	}
	return first != "" && c.version.GreaterThanOrEqual(version.Must(version.NewVersion(first)))
}

// Has reports whether the command line has a feature.
func Has(t *testing.T, feature Feature) bool {
	t.Helper()
	c, err := theCommandLine()
	if err != nil {
		t.Fatal(err)
	}
	return feature.in(c)
}

// Need skips the test where the command line lacks a feature.
func Need(t *testing.T, feature Feature) {
	t.Helper()
	if !Has(t, feature) {
		c, _ := theCommandLine()
		t.Skipf("%s has no %s", c, feature.Name)
	}
}

// CompatibilityTable is the table of the documents, in Markdown.
func CompatibilityTable() string {
	var table strings.Builder
	table.WriteString("| | Terraform | OpenTofu |\n|---|---|---|\n")
	since := func(version string) string {
		return cmp.Or(version, "no")
	}
	for _, feature := range Features {
		fmt.Fprintf(&table, "| %s | %s | %s |\n", feature.Name, since(feature.Terraform), since(feature.OpenTofu))
	}
	return table.String()
}
