package evaluation_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/evaluation"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/nn"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/schedule"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/job"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/job/jobtest"
)

// measured is a job with 130 records of validation data, in three ranges, and minibatches of at most 64.
func measured(t *testing.T) *job.Job {
	t.Helper()
	spec := trainingjob.Job{
		Name: "measured", Namespace: "default", Model: trainingjob.Model{File: "../../runtime/local/testdata/reference_model.py"},
		Data:     trainingjob.Data{Training: "synthetic://digits?records=10&seed=1", Validation: "synthetic://digits?records=130&seed=2", RecordsPerTask: 50},
		Training: trainingjob.Training{Epochs: 1, MinibatchSize: 64, GradsToWait: 1, Seed: 1},
	}
	return jobtest.Load(t, spec, job.Options{Threads: 1})
}

func batcher(t *testing.T, j *job.Job) *data.Batcher {
	t.Helper()
	b, err := data.NewBatcher(j.Validation, j.Graph.Feed, j.Spec.Training.MinibatchSize)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestAResultDependsNeitherOnMinibatchesNorOnTheOrderInWhichRangesAreMeasured(t *testing.T) {
	j := measured(t)
	state, b := make([]float32, j.Network.StateSize()), batcher(t, j)
	j.Network.Init(state, 1)
	measure := func(size int, order ...int) (trainingjob.Measurement, nn.Result) {
		ranges := make([]nn.Result, len(j.Parts))
		for _, i := range order {
			var err error
			if ranges[i], err = evaluation.Range(t.Context(), j.Network, state, b, j.Parts[i], size); err != nil {
				t.Fatal(err)
			}
		}
		return evaluation.Measure(7, j.Metrics, ranges)
	}
	want, sum := measure(1, 0, 1, 2)
	if want.Step != 7 || want.Records != 130 || sum.Records != 130 || want.Loss != sum.LossSum/130 || want.Metrics["accuracy"] != float64(sum.Counts[0])/130 {
		t.Errorf("%+v, of the sum %+v", want, sum)
	}
	for _, size := range []int{7, 50, 64} {
		if got, _ := measure(size, 2, 0, 1); !reflect.DeepEqual(got, want) {
			t.Errorf("in minibatches of %d: %+v, and one by one %+v", size, got, want)
		}
	}
}

func TestARangeIsMinibatchesOfItsRecordsInTheirOrder(t *testing.T) {
	j := measured(t)
	b := batcher(t, j)
	for name, c := range map[string]struct {
		r     schedule.Range
		size  int
		sizes []int
	}{
		"whole minibatches":                   {schedule.Range{Lo: 20, Hi: 80}, 20, []int{20, 20, 20}},
		"a last one that is short":            {schedule.Range{Lo: 3, Hi: 20}, 7, []int{7, 7, 3}},
		"one that is larger than the range":   {schedule.Range{Lo: 100, Hi: 130}, 64, []int{30}},
		"none of a range without any records": {schedule.Range{Lo: 5, Hi: 5}, 64, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var sizes []int
			var labels []int32
			if err := evaluation.Minibatches(t.Context(), b, c.r, c.size, func(batch *graph.Batch) error {
				sizes, labels = append(sizes, batch.N), append(labels, batch.Labels...)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			records, err := j.Validation.Read(t.Context(), c.r.File, c.r.Lo, c.r.Hi)
			if err != nil {
				t.Fatal(err)
			}
			var want []int32
			for _, r := range records {
				want = append(want, int32(r[len(r)-1]))
			}
			if !slices.Equal(sizes, c.sizes) || !slices.Equal(labels, want) {
				t.Errorf("minibatches of %v records with the labels %v, not %v with %v", sizes, labels, c.sizes, want)
			}
		})
	}
	t.Run("none after one that fails", func(t *testing.T) {
		failed, calls := errors.New("failed"), 0
		err := evaluation.Minibatches(t.Context(), b, schedule.Range{Lo: 0, Hi: 30}, 10, func(*graph.Batch) error {
			calls++
			return failed
		})
		if !errors.Is(err, failed) || calls != 1 {
			t.Errorf("%v after %d minibatches", err, calls)
		}
	})
}
