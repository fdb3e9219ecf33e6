package scenario

import (
	"os"
	"path/filepath"
	"testing"
)

func TestCopyExamplesLeavesOutStateAndVariables(t *testing.T) {
	source, target := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	for _, name := range []string{"a/main.tf", "a/terraform.tfstate", "a/terraform.tfvars", "a/.terraform/x.json", "models/m.py"} {
		path := filepath.Join(source, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := copyExamples(target, source); err != nil {
		t.Fatal(err)
	}
	for name, wanted := range map[string]bool{
		"a/main.tf": true, "models/m.py": true, "a/terraform.tfstate": false, "a/terraform.tfvars": false, "a/.terraform": false,
	} {
		if _, err := os.Stat(filepath.Join(target, name)); (err == nil) != wanted {
			t.Errorf("%s: %v", name, err)
		}
	}
}
