package metric_test

import (
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/metric"
)

// yes is a model whose one output is the logit of a yes.
func yes() *graph.Model {
	return &graph.Model{Loss: graph.SigmoidCrossEntropy, Metrics: []graph.Metric{
		{Name: "area", Kind: graph.AUC},
		{Name: "right", Kind: graph.BinaryAccuracy},
		{Name: "sure", Kind: graph.BinaryAccuracy, Threshold: 1.5},
		{Name: "again", Kind: graph.AUC},
	}}
}

type record struct{ logit, target float32 }

func count(s metric.Set, records []record) []int64 {
	counts := make([]int64, s.Size())
	for _, r := range records {
		s.Targeted(counts, r.logit, r.target)
	}
	return counts
}

// kerasAUC is tf.keras.metrics.AUC of TF 2.0, written as there: for every threshold the records are counted anew.
func kerasAUC(records []record) float64 {
	const n, epsilon = 200, 1e-7
	thresholds := []float64{0 - epsilon}
	for i := range n - 2 {
		thresholds = append(thresholds, float64(float32(float64(i+1)/(n-1))))
	}
	thresholds = append(thresholds, 1+epsilon)
	var recall, fallOut []float64
	for _, threshold := range thresholds {
		var tp, fn, fp, tn float64
		for _, r := range records {
			above := float64(float32(kernel.Sigmoid(float64(r.logit)))) > threshold
			switch positive := r.target != 0; {
			case positive && above:
				tp++
			case positive:
				fn++
			case above:
				fp++
			default:
				tn++
			}
		}
		recall, fallOut = append(recall, divide(tp, tp+fn)), append(fallOut, divide(fp, fp+tn))
	}
	area := 0.0
	for i := range n - 1 {
		area += (fallOut[i] - fallOut[i+1]) * (recall[i] + recall[i+1]) / 2
	}
	return area
}

func divide(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

func someRecords(t *rapid.T) []record {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) record {
		return record{rapid.Float32Range(-12, 12).Draw(t, "logit"), float32(rapid.IntRange(0, 1).Draw(t, "target"))}
	}), 1, 60).Draw(t, "records")
}

func TestTheAreaUnderTheCurveIsKeras(t *testing.T) {
	s := metric.New(yes())
	rapid.Check(t, func(t *rapid.T) {
		records := someRecords(t)
		got := s.Values(0, count(s, records), len(records))
		if want := kerasAUC(records); math.Abs(got["area"]-want) > 1e-12 || got["again"] != got["area"] {
			t.Fatalf("%v, and by Keras' formula %v", got, want)
		}
	})
	for name, c := range map[string]struct {
		records []record
		want    float64
	}{
		"a model that knows it all has 1":        {[]record{{-3, 0}, {-1, 0}, {1, 1}, {2, 1}}, 1},
		"one that has it the wrong way round 0":  {[]record{{-3, 1}, {-1, 1}, {1, 0}, {2, 0}}, 0},
		"one that says the same of all has half": {[]record{{0.7, 1}, {0.7, 0}, {0.7, 0}}, 0.5},
		"Keras' example has 0.75":                {[]record{{logit(1e-9), 0}, {logit(0.5), 0}, {logit(0.3), 1}, {logit(0.9), 1}}, 0.75},
		"records of one label alone have 0":      {[]record{{1, 1}, {2, 1}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := s.Values(0, count(s, c.records), len(c.records))["area"]; got != c.want {
				t.Error(got)
			}
		})
	}
}

func logit(p float64) float32 { return float32(math.Log(p / (1 - p))) }

func TestCountsAreAddedInAnyOrderWithEqualResult(t *testing.T) {
	s := metric.New(yes())
	rapid.Check(t, func(t *rapid.T) {
		records := someRecords(t)
		want := count(s, records)
		parts := make([][]record, 3)
		for _, r := range records {
			p := rapid.IntRange(0, 2).Draw(t, "part")
			parts[p] = append(parts[p], r)
		}
		got := make([]int64, s.Size())
		for _, p := range rapid.Permutation([]int{0, 1, 2}).Draw(t, "order") {
			for i, n := range count(s, parts[p]) {
				got[i] += n
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%v, and at once %v", got, want)
		}
	})
}

func TestAccuracies(t *testing.T) {
	records := []record{{-1, 0}, {1, 0}, {1, 1}, {2, 1}, {0, 0}}
	t.Run("a logit above its threshold says yes", func(t *testing.T) {
		s := metric.New(yes())
		counts := count(s, records)
		got := s.Values(0, counts, len(records))
		if got["right"] != 4.0/5 || got["sure"] != 4.0/5 || s.Accuracy(counts, len(records)) != 4.0/5 {
			t.Error(got)
		}
	})
	t.Run("the first of the largest logits is the answer", func(t *testing.T) {
		s := metric.New(&graph.Model{Loss: graph.SparseSoftmaxCrossEntropy, Metrics: []graph.Metric{{Name: "a", Kind: graph.Accuracy}}})
		counts := make([]int64, s.Size())
		s.Labelled(counts, []float32{1, 3, 3}, 1)
		s.Labelled(counts, []float32{1, 3, 3}, 2)
		if got := s.Values(0, counts, 2); len(counts) != 1 || got["a"] != 0.5 {
			t.Error(counts, got)
		}
	})
	t.Run("metrics that somebody else counts have a count each", func(t *testing.T) {
		s := metric.Shares([]string{"top1", "top5"})
		if got := s.Values(0, []int64{2, 3}, 4); got["top1"] != 0.5 || got["top5"] != 0.75 || s.Accuracy([]int64{2, 3}, 4) != 0.5 {
			t.Error(got)
		}
		if none := metric.Shares(nil); none.Size() != 1 || len(none.Values(0, []int64{0}, 4)) != 0 || none.Accuracy([]int64{0}, 4) != 0 {
			t.Error(none)
		}
	})
	t.Run("the squared error is the loss it goes with, and no answer is right", func(t *testing.T) {
		s := metric.New(&graph.Model{Loss: graph.MeanSquaredError, Metrics: []graph.Metric{{Name: "mse", Kind: graph.SquaredError}}})
		counts := count(s, records)
		if got := s.Values(0.25, counts, 5); got["mse"] != 0.25 || s.Accuracy(counts, 5) != 0 {
			t.Error(counts, got)
		}
	})
}
