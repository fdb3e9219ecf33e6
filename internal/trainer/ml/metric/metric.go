// Package metric computes the metrics of a model. A metric needs a fixed number of integers: the number of records with
// correct answers, and for the area under a curve two histograms. Integers can be added over records, minibatches,
// virtual workers and ranges in any order with the same result, so a metric does not depend on how the records are
// distributed. Its value is computed once, from the sums.
//
// Values are equal on every processor. Losses are not counted but added as floating-point numbers, in an order that the
// callers define.
package metric

import (
	"slices"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
)

// Set is the metrics of one model. The zero value counts nothing.
type Set struct {
	metrics []placed
	kinds   []placed // what is counted, each once, in the order of the counts
	size    int
}

// placed is a metric, and where its counts begin.
type placed struct {
	graph.Metric
	at int
}

// New returns the metrics of a model. The first count is that of the right answers, as graph.MetricOf the model's loss
// has them, whatever the model's metrics are.
func New(m *graph.Model) Set {
	var s Set
	s.place(graph.Metric{Kind: graph.MetricOf(m.Loss)})
	for _, metric := range m.Metrics {
		s.metrics = append(s.metrics, placed{metric, s.place(metric)})
	}
	return s
}

// Shares returns metrics that somebody else counts: each is a share of the records, and has a count of its own, in
// their order. The first is taken for that of the right answers; without any there is one count all the same, which
// stays 0.
func Shares(names []string) Set {
	s := Set{size: max(1, len(names))}
	for i, name := range names {
		s.metrics = append(s.metrics, placed{graph.Metric{Name: name, Kind: graph.Accuracy}, i})
	}
	return s
}

// place finds or makes room for what a metric counts. Two metrics that differ by their names share it.
func (s *Set) place(m graph.Metric) int {
	m.Name = ""
	for _, k := range s.kinds {
		if k.Metric == m {
			return k.at
		}
	}
	at := s.size
	s.kinds = append(s.kinds, placed{m, at})
	s.size += size(m.Kind)
	return at
}

func size(k graph.MetricKind) int {
	if k == graph.AUC {
		return 2 * aucBuckets
	}
	return 1 // squared errors have no right answers; theirs stays 0
}

// Size is how many integers a count has.
func (s Set) Size() int { return s.size }

// Labelled counts a record with a class number.
func (s Set) Labelled(counts []int64, output []float32, label int) {
	for _, k := range s.kinds {
		if k.Kind == graph.Accuracy && Largest(output) == label {
			counts[k.at]++
		}
	}
}

// Targeted counts a record with one output and one target.
func (s Set) Targeted(counts []int64, output, target float32) {
	for _, k := range s.kinds {
		switch k.Kind {
		case graph.BinaryAccuracy:
			if (output > float32(k.Threshold)) == (target > 0.5) {
				counts[k.at]++
			}
		case graph.AUC:
			aucCount(counts[k.at:k.at+2*aucBuckets], output, target != 0)
		}
	}
}

// Largest is the class that an output layer's values answer with: the index of the largest, the first of equals.
func Largest(values []float32) int {
	best := 0
	for i, v := range values {
		if v > values[best] {
			best = i
		}
	}
	return best
}

// Values are the model's metrics by their names, of so many records with that mean loss and those counts.
func (s Set) Values(loss float64, counts []int64, records int) map[string]float64 {
	values := map[string]float64{}
	for _, m := range s.metrics {
		switch m.Kind {
		case graph.SquaredError:
			values[m.Name] = loss // the loss that it goes with is the same
		case graph.AUC:
			values[m.Name] = aucValue(counts[m.at : m.at+2*aucBuckets])
		default:
			values[m.Name] = float64(counts[m.at]) / float64(records)
		}
	}
	return values
}

// Accuracy is the share of the records that were answered right; 0 where the loss knows no right answers.
func (s Set) Accuracy(counts []int64, records int) float64 {
	return float64(counts[0]) / float64(records)
}

// The area under the ROC curve as tf.keras.metrics.AUC of TF 2.0 defines it (num_thresholds=200, curve="ROC",
// summation_method="interpolation"): the thresholds are t₀ = −ε, tₖ = k/199 for k = 1 … 198, and t₁₉₉ = 1 + ε. With
// P and N the records with positive and other labels, TPₖ and FPₖ those of them whose probability is above tₖ,
//
//	AUC = Σₖ (FPₖ − FPₖ₊₁)/N · (TPₖ + TPₖ₊₁)/(2P),   k = 0 … 198;   0 where P or N is 0, as Keras divides.
//
// A record's bucket is the number of inner thresholds (1 … 198) below its probability; TP and FP are the sums of
// histograms of buckets from above. So the area is the share of the pairs (positive, other) whose positive one stands
// in the higher bucket, pairs of one bucket counting half.
const (
	aucThresholds = 200
	aucBuckets    = aucThresholds - 1
)

// aucInner are the inner thresholds, as TensorFlow rounds them.
var aucInner = func() (t [aucThresholds - 2]float32) {
	for k := range t {
		t[k] = float32(float64(k+1) / (aucThresholds - 1))
	}
	return t
}()

// aucCount adds a record to the histogram of its label; that of the positive ones comes first. The probability is the
// sigmoid of a logit, in float64 and rounded once.
func aucCount(histograms []int64, logit float32, positive bool) {
	bucket, _ := slices.BinarySearch(aucInner[:], float32(kernel.Sigmoid(float64(logit))))
	if !positive {
		bucket += aucBuckets
	}
	histograms[bucket]++
}

func aucValue(histograms []int64) float64 {
	positive, negative := histograms[:aucBuckets], histograms[aucBuckets:]
	var above, twice, others float64 // positives above the bucket, twice the pairs in order; integers below 2⁵³ but in data of 10⁸ records
	for b := aucBuckets - 1; b >= 0; b-- {
		p, n := float64(positive[b]), float64(negative[b])
		twice += float64(n * (above + above + p))
		above += p
		others += n
	}
	if above == 0 || others == 0 {
		return 0
	}
	return twice / (2 * above * others)
}
