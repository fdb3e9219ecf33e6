package job_test

import (
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/job"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/job/jobtest"
)

func TestAJobThatNamesABuiltInModelIsTheJobOfItsFile(t *testing.T) {
	spec := trainingjob.Job{
		Name: "job", Namespace: "default",
		Data:     trainingjob.Data{Training: "synthetic://digits?records=40&seed=1", RecordsPerTask: 10},
		Training: trainingjob.Training{Epochs: 1, MinibatchSize: 5, GradsToWait: 2, Seed: 1},
	}
	var digests []string
	for _, model := range []trainingjob.Model{{Name: "mnist"}, {File: "../../../../examples/models/mnist_functional_api.py"}} {
		spec.Model = model
		if problems := spec.Problems(); len(problems) > 0 {
			t.Fatal(problems)
		}
		digests = append(digests, jobtest.Load(t, spec, job.Options{Threads: 1}).Identity.Job)
	}
	if digests[0] != digests[1] {
		t.Errorf("%s and %s: a finished job of one is not found by the other", digests[0], digests[1])
	}
}

func TestAModelThatCannotBeReadIsNamed(t *testing.T) {
	for want, model := range map[string]trainingjob.Model{`"minst"`: {Name: "minst"}, "nowhere.py": {File: "nowhere.py"}} {
		if _, _, err := job.ReadModel(trainingjob.Job{Model: model}, job.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", model, err)
		}
	}
}
