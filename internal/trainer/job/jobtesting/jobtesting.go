// Package jobtesting loads jobs for tests, as masters and workers do.
package jobtesting

import (
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/job"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainingjob"
)

// Load loads a job with its own model until the test ends.
func Load(t testing.TB, spec trainingjob.Job, o job.Options) *job.Job {
	t.Helper()
	name, model, err := job.ReadModel(spec, o)
	if err != nil {
		t.Fatal(err)
	}
	j, err := job.Load(t.Context(), spec, name, model, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return j
}
