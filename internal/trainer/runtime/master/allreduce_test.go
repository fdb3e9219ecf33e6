package master_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/job"
)

func TestAWorkerOfARoundThatFlipsOneBitOfEveryGradientIsNamedWithinAThousandSteps(t *testing.T) {
	s := newSite(t, 35)
	s.spec.Training.Aggregation = trainingjob.AggregationAllReduce
	s.job.Spec.Training = s.spec.Training
	var err error
	if s.config.JobJSON, err = json.Marshal(s.spec); err != nil {
		t.Fatal(err)
	}
	s.config.Min, s.config.Max = 3, 3
	s.launcher.work = func(ctx context.Context, id int) error {
		if id == 1 {
			return s.workerOn("bad-node", func(n countingNetwork) job.Network { return gradientFlipper{n} })(ctx, id)
		}
		return s.workerOn("good-node", sound)(ctx, id)
	}
	result := s.run(t.Context())
	if step := s.step.Load(); result.Code != coordinator.ExitJobFailed || !strings.Contains(result.Reason, "different gradients of virtual worker") ||
		!strings.Contains(result.Reason, "node bad-node, ") || step > flipsFrom+1000 {
		t.Fatalf("at step %d it ended with %+v", step, result)
	}
}

// laterFence is the fence of a later master of the same job.
type laterFence struct {
	fence
	generation int64
}

func (f laterFence) Generation() int64 { return f.generation }

func TestMastersDieDuringAllReduceAndNothingIsLostOrAppliedTwice(t *testing.T) {
	s := newSite(t, 3)
	s.spec.Training.Aggregation = trainingjob.AggregationAllReduce
	s.job.Spec.Training = s.spec.Training
	var err error
	if s.config.JobJSON, err = json.Marshal(s.spec); err != nil {
		t.Fatal(err)
	}
	s.job.Spec.Checkpoint = &trainingjob.Checkpoint{Steps: s.job.Schedule.Steps()} // none on the way
	s.config.Min, s.config.Max = 1, 3
	s.launcher.work = s.worker(2 * time.Millisecond)
	const deaths = 4
	var died []int64
	for generation := range int64(deaths) {
		s.config.Fence = laterFence{fence{s.lost}, 3 + generation}
		died = append(died, s.diesInAStep())
	}
	s.config.Fence = laterFence{fence{s.lost}, 3 + deaths}
	s.expectDone(s.run(t.Context()))
	s.launcher.close()
	back := s.reporter.takenBack(t)
	for i, step := range died {
		if !slices.ContainsFunc(back, func(taken int64) bool { return taken >= step-1 }) {
			t.Errorf("master %d died at step %d, and the next ones resumed from %v", i, step, back)
		}
	}
	s.reporter.mu.Lock()
	defer s.reporter.mu.Unlock()
	if !slices.ContainsFunc(s.reporter.notices, func(n coordinator.Notice) bool { return n.Reason == "AllReduce" }) {
		t.Error("the workers never used all-reduce")
	}
	for _, n := range s.reporter.notices {
		if n.Reason == "StateDiffers" || strings.Contains(n.Message, "gone") {
			t.Errorf("%+v", n)
		}
	}
}
