package nn_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/modelfile"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/job"
)

// TestModelFilesOfElasticDLsUsersComputeWhatTheReferenceComputes compares the networks of model files with the
// reference in float64: those of package modelfile's tests, and those of the checkouts of ElasticDL's repository that
// ELASTICDL_DIR names.
func TestModelFilesOfElasticDLsUsersComputeWhatTheReferenceComputes(t *testing.T) {
	files := []string{}
	for _, name := range []string{"preprocessing", "feature_columns", "masked_factors"} {
		files = append(files, filepath.Join("..", "modelfile", "testdata", name+".py"))
	}
	for _, dir := range filepath.SplitList(os.Getenv("ELASTICDL_DIR")) {
		for _, pattern := range []string{"model_zoo/*/*.py", "model_zoo/*/*/*.py", "elasticdl/python/examples/*.py"} {
			found, err := filepath.Glob(filepath.Join(dir, pattern))
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, found...)
		}
	}
	compared := map[string]bool{}
	for _, file := range files {
		name, text, err := job.ReadModel(trainingjob.Job{Model: trainingjob.Model{File: file}}, job.Options{})
		if err != nil {
			t.Fatal(err)
		}
		m, _, err := modelfile.Load(name, text, modelfile.Options{})
		if err != nil {
			if strings.Contains(file, "testdata") {
				t.Error(err)
			}
			continue
		}
		m.Metrics = []graph.Metric{{Name: "metric", Kind: graph.MetricOf(m.Loss)}} // which the reference counts
		m.SumOfLosses = false
		if network := string(graph.Canonical(m)); compared[network] {
			continue // the same network in another commit
		} else {
			compared[network] = true
		}
		t.Run(file, func(t *testing.T) {
			n := compile(t, m, kernel.Available()[0], 1, 3)
			compareWithReference(t, m, n, randomState(n), batch(m, 3, 5))
		})
	}
}
