package providertest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestACommandLineIdentifiesItself(t *testing.T) {
	for printed, want := range map[string]string{
		"Terraform v1.11.4\non linux_amd64": "Terraform 1.11.4 registry.terraform.io [ephemeral input variables, write-only attributes (`secrets_wo`)]",
		"Terraform v1.8.0-rc1":              "Terraform 1.8.0 registry.terraform.io []",
		"\nWarning: Unable to open CLI configuration file\n\nOpenTofu v1.12.6-dev\non linux_amd64": "OpenTofu 1.12.6 registry.opentofu.org " +
			"[ephemeral input variables, write-only attributes (`secrets_wo`), import by identity (`import { identity = … }`)]",
		"Terraform v1.16.0": "Terraform 1.16.0 registry.terraform.io [ephemeral input variables, write-only attributes (`secrets_wo`), " +
			"import by identity (`import { identity = … }`), list resources (`terraform query`), actions (`terraform apply -invoke`, `action_trigger`)]",
	} {
		program := filepath.Join(t.TempDir(), "terraform")
		if err := os.WriteFile(program, fmt.Appendf(nil, "#!/bin/sh\ncat <<'EOF'\n%s\nEOF\n", printed), 0o700); err != nil { //nolint:gosec // it is run
			t.Fatal(err)
		}
		c, err := identify(program)
		if err != nil {
			t.Error(err)
			continue
		}
		var has []string
		for _, feature := range []Feature{Ephemeral, WriteOnly, ImportByIdentity, Query, Actions} {
			if feature.in(c) {
				has = append(has, feature.Name)
			}
		}
		if got := fmt.Sprintf("%s %s [%s]", c, c.registry(), strings.Join(has, ", ")); got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
	program := filepath.Join(t.TempDir(), "terraform")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho Pulumi v3.0.0\n"), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	if c, err := identify(program); err == nil {
		t.Errorf("Pulumi is taken for %s", c)
	}
}

// The guide's table is the one by which tests are skipped.
func TestTheGuideHasTheCompatibilityTable(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join("..", "..", "templates", "guides", "terraform-and-opentofu.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(guide), "\n"+CompatibilityTable()+"\n") {
		t.Errorf("templates/guides/terraform-and-opentofu.md lacks this table:\n%s", CompatibilityTable())
	}
}
