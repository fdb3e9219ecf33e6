package local_test

import (
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/kernel"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainingjob"
)

// between is the reference job with gradients added between the workers.
func between(model string) trainingjob.Job {
	spec := reference(model)
	spec.Training.Aggregation = trainingjob.AggregationAllReduce
	return spec
}

func TestWorkersThatAddBetweenThemselvesGiveTheHashOfTheStar(t *testing.T) {
	fastest := kernel.Available()[0].Name
	for _, model := range []string{"testdata/reference_model.py", "testdata/residual_model.py"} {
		want := train(t, reference(model), run{fastest, 1, 1, 0})
		for _, workers := range []int{1, 2, 3, 4, 8} {
			for _, kills := range []int{0, 20} {
				r := run{fastest, workers, 1, kills}
				t.Run(r.String(), func(t *testing.T) {
					if hash := train(t, between(model), r); hash != want {
						t.Errorf("hash %s, and %s as a star", hash, want)
					}
				})
			}
		}
	}
}
