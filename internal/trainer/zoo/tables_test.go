package zoo_test

import (
	"cmp"
	"slices"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/gradient"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/job"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/nn"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/zoo"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainingjob"
)

// TestTabularModelsFindThePlantedStructure: what is stated is the area under the ROC curve of 4,000 records of another seed, and
// a share of right answers above that of the more frequent label (two thirds and three quarters).
func TestTabularModelsFindThePlantedStructure(t *testing.T) {
	for name, c := range map[string]struct {
		set      string
		records  int64
		epochs   int
		auc      float64
		accuracy float64
	}{
		"deepfm":     {"frappe", 40_000, 2, 0.87, 0.80},
		"wide_deep":  {"census", 20_000, 2, 0.94, 0.88},
		"census_dnn": {"census", 20_000, 2, 0.94, 0.88},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			built, err := zoo.Load(name)
			if err != nil {
				t.Fatal(err)
			}
			spec := trainingjob.Job{
				Name: name, Namespace: "default", Model: trainingjob.Model{File: built.FileName()},
				Data:     trainingjob.Data{Training: data.Synthetic(c.set, c.records, 1), Validation: data.Synthetic(c.set, 4000, 2), RecordsPerTask: 1000},
				Training: trainingjob.Training{Epochs: c.epochs, MinibatchSize: 50, GradsToWait: 1, Seed: 1},
			}
			j, err := job.Load(t.Context(), spec, built.FileName(), built.Source, job.Options{Threads: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := j.Close(); err != nil {
					t.Error(err)
				}
			}()
			auc, accuracy := measure(t, j, trained(t, j))
			t.Logf("area under the curve %.4f, accuracy %.4f", auc, accuracy)
			if auc < c.auc || accuracy < c.accuracy {
				t.Errorf("%.4f and %.4f are less than the %v and %v that are stated", auc, accuracy, c.auc, c.accuracy)
			}
		})
	}
}

// trained is the state at the end of a job with one virtual worker.
func trained(t *testing.T, j *job.Job) []float32 {
	t.Helper()
	n := j.Network
	state, out := make([]float32, n.StateSize()), make([]float32, n.TrainableSize()+n.StatsSize())
	n.Init(state, j.Spec.Training.Seed)
	sum := gradient.Sum{Dense: out[:n.TrainableSize()], Rows: make([]gradient.Rows, len(n.Tables()))}
	batcher, err := data.NewBatcher(j.Training, j.Graph.Feed, j.Spec.Training.MinibatchSize)
	if err != nil {
		t.Fatal(err)
	}
	var batch graph.Batch
	for step := range j.Schedule.Steps() {
		plan := j.Schedule.Step(step)
		m := plan.Minibatches[0]
		if err := batcher.Fill(t.Context(), m.Range.File, m.Records, &batch); err != nil {
			t.Fatal(err)
		}
		if _, err := n.Gradient(state, &batch, plan.Records, step, 0, j.Spec.Training.Seed, out, sum.Rows); err != nil {
			t.Fatal(err)
		}
		if err := n.Apply(state, sum, nil, step); err != nil {
			t.Fatal(err)
		}
	}
	return state
}

// measure is the area under the ROC curve and the share of right answers on the validation data.
func measure(t *testing.T, j *job.Job, state []float32) (auc, accuracy float64) {
	t.Helper()
	size := j.Spec.Training.MinibatchSize
	batcher, err := data.NewBatcher(j.Validation, j.Graph.Feed, size)
	if err != nil {
		t.Fatal(err)
	}
	type answer struct {
		logit float32
		label int32
	}
	var answers []answer
	var batch graph.Batch
	right := 0
	for lo := int64(0); lo < j.Validation.Records(); lo += int64(size) {
		var indices []int64
		for i := lo; i < min(lo+int64(size), j.Validation.Records()); i++ {
			indices = append(indices, i)
		}
		if err := batcher.Fill(t.Context(), 0, indices, &batch); err != nil {
			t.Fatal(err)
		}
		if _, err := j.Network.Evaluate(state, &batch); err != nil {
			t.Fatal(err)
		}
		for i, logit := range j.Network.(*nn.Network).Outputs() {
			answers = append(answers, answer{logit, batch.Labels[i]})
			if (logit > 0) == (batch.Labels[i] == 1) {
				right++
			}
		}
	}
	slices.SortFunc(answers, func(a, b answer) int { return cmp.Compare(a.logit, b.logit) })
	zeros, pairs := 0, 0
	for _, a := range answers { // how many zeros are below each one
		if a.label == 0 {
			zeros++
		} else {
			pairs += zeros
		}
	}
	return float64(pairs) / float64(zeros*(len(answers)-zeros)), float64(right) / float64(len(answers))
}
