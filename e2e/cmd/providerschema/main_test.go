package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/elastic-training/terraform-provider-elastic/e2e/program"
	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
)

// Terraform's own conversion is the reference for as much as the release that is installed knows of.
func TestWhatIsPrintedIsWhatTerraformPrints(t *testing.T) {
	dir := t.TempDir()
	built, err := program.Provider(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"main.tf": "terraform {\n  required_providers {\n    elastic = { source = \"elastic-training/elastic\" }\n  }\n}\n",
		"rc":      "provider_installation {\n  dev_overrides {\n    \"elastic-training/elastic\" = \"" + filepath.Dir(built) + "\"\n  }\n  direct {}\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), "terraform", "providers", "schema", "-json")
	command.Dir = dir
	command.Env = append(os.Environ(), "TF_CLI_CONFIG_FILE="+filepath.Join(dir, "rc"), "CHECKPOINT_DISABLE=1")
	printed, err := command.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	var want, got struct {
		Schemas map[string]map[string]any `json:"provider_schemas"`
	}
	if err := json.Unmarshal(printed, &want); err != nil {
		t.Fatal(err)
	}
	var ours bytes.Buffer
	if err := run(t.Context(), &ours); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(ours.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	terraforms := want.Schemas[providertest.Registry(t)+"/elastic-training/elastic"]
	if len(terraforms) < 4 {
		t.Fatalf("terraform prints %d kinds of schemas", len(terraforms))
	}
	for kind, schemas := range terraforms {
		if diff := cmp.Diff(schemas, got.Schemas[name][kind]); diff != "" {
			t.Errorf("%s:\n%s", kind, diff)
		}
	}
}
