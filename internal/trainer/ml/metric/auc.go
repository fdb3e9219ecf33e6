package metric

import (
	"slices"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
)

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
