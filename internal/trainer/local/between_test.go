package local_test

import (
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainingjob"
)

func TestWorkersThatAddBetweenThemselvesGiveTheHashOfTheStar(t *testing.T) {
	for _, model := range []string{"reference_model", "residual_model"} {
		t.Run(model, func(t *testing.T) {
			givesOneHash(t, reference("testdata/"+model+".py"), ways{
				workers: []int{1, 2, 3, 4, 8}, kills: []int{0, 20}, aggregations: []string{trainingjob.AggregationAllReduce},
			}.runs())
		})
	}
}
