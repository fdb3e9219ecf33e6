package worker

import (
	"context"
	"errors"
	"io"
	"math"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/gradient"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/reduce"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire/wirepb"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/job"
)

// frames counts the sent frames.
type frames int

func (f *frames) SendMsg(any) error {
	*f++
	return nil
}

// TestAWorkerThatWasAskedToStopHasLeftAlsoIfTheStreamEndsWithItsDismissal: it has to exit with code 143, and not as one that
// has done its work.
func TestAWorkerThatWasAskedToStopHasLeftAlsoIfTheStreamEndsWithItsDismissal(t *testing.T) {
	stopped, cancel := context.WithCancel(context.Background())
	cancel()
	for name, serve := range map[string]func(*session, context.Context) error{
		"gradients":   (*session).work,
		"collectives": (*session).serveMember,
		"restart":     (*session).serveRanks,
	} {
		t.Run(name, func(t *testing.T) {
			for range 50 { // either may be noticed first
				s := &session{
					worker: &worker{member: &member{}, ranks: &ranks{}, job: &job.Job{}, planned: -1}, queue: wire.NewQueue(math.MaxInt),
					in: make(chan received, 1), broken: make(chan error, 1), over: make(chan struct{}),
				}
				s.in <- received{message: &wirepb.Message{Kind: &wirepb.Message_Dismissal{Dismissal: &wirepb.Dismissal{}}}}
				s.broken <- io.EOF
				close(s.over)
				if err := serve(s, stopped); !errors.Is(err, ErrLeft) {
					t.Fatalf("it ended with %v", err)
				}
			}
		})
	}
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
