package worker

import (
	"context"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/gradient"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/reduce"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire"
)

// frames counts the sent frames.
type frames int

func (f *frames) SendMsg(any) error {
	*f++
	return nil
}

func TestSumsOfAStepThatOthersCompletedAreNotSentForTheNextOne(t *testing.T) {
	tree := reduce.NewTree(func(dst, a []float32) { dst[0] += a[0] }, nil)
	tree.Reset(2)
	if err := tree.Add(reduce.Span{Lo: 0, Hi: 1}, gradient.Sum{Dense: []float32{1}}); err != nil {
		t.Fatal(err)
	}
	// It computed virtual worker 0 of step 6 and applied the update of step 6 before it had done the rest.
	s := &session{worker: &worker{planned: 6, step: 7, tree: tree}, queue: wire.NewQueue(8)}
	s.sendGradients()
	s.queue.Close()
	var sent frames
	if err := s.queue.Run(context.Background(), &sent); err != nil || sent != 0 {
		t.Errorf("%d frames were sent: %v", sent, err)
	}
}
