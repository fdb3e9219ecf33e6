package local_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/master"
)

// evaluated is the reference job with two epochs, 250 records of validation data, and an evaluation every 7 steps.
func evaluated() trainingjob.Job {
	spec := reference("testdata/reference_model.py")
	spec.Training.Epochs = 2
	spec.Data.Validation = "synthetic://digits?records=250&seed=9"
	spec.Evaluation = &trainingjob.Evaluation{Steps: 7, Epochs: 1}
	return spec
}

// described is the model.json of a run, without the job's own digest.
func described(t *testing.T, model *master.ModelInfo) master.ModelInfo {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(filepath.Dir(model.Files[0]), "model.json"))
	if err != nil {
		t.Fatal(err)
	}
	var info master.ModelInfo
	if err := json.Unmarshal(text, &info); err != nil {
		t.Fatal(err)
	}
	return info
}

func TestEvaluationsDoNotChangeTheModelAndDoNotDependOnMembership(t *testing.T) {
	if testing.Short() {
		t.Skip("it trains with and without evaluations, and through many interruptions")
	}
	fastest := kernel.Available()[0].Name
	unevaluated := evaluated()
	unevaluated.Evaluation, unevaluated.Data.Validation = nil, ""
	hash := train(t, unevaluated, run{kernel: fastest, workers: 1, threads: 1})

	once := func(spec trainingjob.Job, r run) master.ModelInfo { return described(t, trained(t, spec, r)) }
	want := once(evaluated(), run{kernel: fastest, workers: 1, threads: 1})
	var steps []int64
	for _, e := range want.Evaluations {
		steps = append(steps, e.Step)
	}
	if !reflect.DeepEqual(steps, []int64{7, 14, 21, 28, 30, 35, 42, 49, 56, 60}) {
		t.Errorf("evaluated at steps %v", steps)
	}
	first, last := want.Evaluations[0], want.Evaluations[len(want.Evaluations)-1]
	if !(last.Loss < first.Loss) || last.Loss != want.Loss || last.Metrics["accuracy"] != want.Accuracy || last.Records != 250 {
		t.Errorf("the first evaluation %+v, the last %+v, the model %+v", first, last, want)
	}
	if want.SHA256 != hash {
		t.Errorf("hash %s, and without evaluations %s", want.SHA256, hash)
	}
	slowest := kernel.Available()[len(kernel.Available())-1].Name
	for _, r := range []run{{kernel: slowest, workers: 3, threads: 2}, {kernel: fastest, workers: 3, threads: 1, kills: 15}} {
		if got := once(evaluated(), r); !reflect.DeepEqual(got, want) {
			t.Errorf("%v: %+v, and elsewhere %+v", r, got, want)
		}
	}
	t.Run("with all-reduce", func(t *testing.T) {
		spec := evaluated()
		spec.Training.Aggregation = trainingjob.AggregationAllReduce
		if got := once(spec, run{kernel: fastest, workers: 3, threads: 1, kills: 5}); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, and by the master %+v", got, want)
		}
	})
	t.Run("through interruptions, in the middle of an evaluation too", func(t *testing.T) {
		spec := evaluated()
		spec.Output = t.TempDir()
		spec.Checkpoint = &trainingjob.Checkpoint{Steps: 10}
		for stops := range 30 {
			result, _ := interrupted(t, spec, fastest)
			if result.Model == nil {
				continue
			}
			if got := described(t, result.Model); !reflect.DeepEqual(got, want) || stops == 0 {
				t.Errorf("after %d interruptions %+v, and without %+v", stops, got, want)
			}
			return
		}
		t.Error("it was interrupted 30 times, and did not come to its end")
	})
}
