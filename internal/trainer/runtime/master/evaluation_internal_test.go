package master

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

func TestEvaluationsThatAWorkerLacksStayWithTheMaster(t *testing.T) {
	at := func(steps ...int64) (all []trainingjob.Measurement) {
		for _, step := range steps {
			all = append(all, trainingjob.Measurement{Step: step, Loss: float64(step)})
		}
		return all
	}
	if diff := cmp.Diff(at(3, 6, 9, 12), union(at(3, 6, 9), at(3, 9, 12))); diff != "" {
		t.Error(diff)
	}
	if all := union(at(1), nil); len(all) != 1 {
		t.Errorf("%+v", all)
	}
}
