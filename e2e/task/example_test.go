package task_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
)

// TestTheExamplesCanBePlanned plans them on this cluster, where the data sources are read too.
func TestTheExamplesCanBePlanned(t *testing.T) {
	t.Parallel()
	for _, example := range []string{"resources/elastic_task/resource.tf", "data-sources/elastic_workloads/data-source.tf", "data-sources/elastic_cluster_capacity/data-source.tf"} {
		t.Run(filepath.Base(filepath.Dir(example)), func(t *testing.T) {
			t.Parallel()
			r := providertest.NewTerminal(t)
			r.Environment = []string{"TF_VAR_wandb_api_key=x"}
			if err := os.CopyFS(r.Directory, os.DirFS(filepath.Join("..", "..", "examples", filepath.Dir(example)))); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(r.Directory, filepath.Base(example))
			config, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(path); err != nil { // it is written as main.tf, with the provider's configuration
				t.Fatal(err)
			}
			if printed, code := r.Run(t, asAdmin(string(config)), "plan"); code != 0 {
				t.Errorf("plan exited with %d:\n%s", code, printed)
			}
		})
	}
}
