// Package jobtest loads jobs for tests, as masters and workers do.
package jobtest

import (
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/job"
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
