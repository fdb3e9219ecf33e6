package promises_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
)

// TestTheModulesOwnTestsPass runs terraform test as the README of the module says.
func TestTheModulesOwnTestsPass(t *testing.T) {
	r := providertest.NewTerminalWith(t, map[string]string{"KUBE_CONFIG_PATH": cluster.Kubeconfig})
	module := os.DirFS(root + "/examples/modules/team-queue")
	r.Directory = filepath.Join(r.Directory, "team-queue")
	if err := os.CopyFS(r.Directory, module); err != nil {
		t.Fatal(err)
	}
	main, err := os.ReadFile(filepath.Join(r.Directory, "main.tf"))
	if err != nil {
		t.Fatal(err)
	}
	providertest.ExpectText(t, succeeds(t, r, string(main), "test"), "Success!", "0 failed")
}
