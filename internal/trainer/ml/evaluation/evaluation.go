// Package evaluation computes loss and metrics of a state on a data set. Records are evaluated in ranges, which any
// worker may compute. Losses are float64 sums, within a range in the order of its records, and then in the order of the
// ranges; metrics are counts. So the result depends on the state, the records and the ranges, but not on the size of
// minibatches or on which worker computed a range.
//
// Its callers assign the ranges to workers.
package evaluation

import (
	"context"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/metric"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/nn"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/schedule"
)

// Network measures a minibatch; see nn.Network.Evaluate.
type Network interface {
	Evaluate(state []float32, b *graph.Batch) (nn.Result, error)
}

// Minibatches calls do with one minibatch of a range after the other, each of at most size records, in their order. The
// batch is valid until do returns.
func Minibatches(ctx context.Context, b *data.Batcher, r schedule.Range, size int, do func(*graph.Batch) error) error {
	var batch graph.Batch
	indices := make([]int64, 0, size)
	for lo := r.Lo; lo < r.Hi; lo += int64(size) {
		indices = indices[:0]
		for i := lo; i < min(lo+int64(size), r.Hi); i++ {
			indices = append(indices, i)
		}
		if err := b.Fill(ctx, r.File, indices, &batch); err != nil {
			return err
		}
		if err := do(&batch); err != nil {
			return err
		}
	}
	return nil
}

// Range measures a range, in minibatches of at most size records.
func Range(ctx context.Context, n Network, state []float32, b *data.Batcher, r schedule.Range, size int) (sum nn.Result, err error) {
	err = Minibatches(ctx, b, r, size, func(batch *graph.Batch) error {
		result, err := n.Evaluate(state, batch)
		sum.Add(result)
		return err
	})
	return sum, err
}

// Measure is what the ranges of a data set say together, in their order, of the state after step updates.
func Measure(step int64, metrics metric.Set, ranges []nn.Result) (trainingjob.Measurement, nn.Result) {
	var sum nn.Result
	for _, r := range ranges {
		sum.Add(r)
	}
	loss := sum.LossSum / float64(sum.Records)
	return trainingjob.Measurement{Step: step, Loss: loss, Metrics: metrics.Values(loss, sum.Counts, sum.Records), Records: int64(sum.Records)}, sum
}
