package master_test

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/gradient"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/nn"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/job"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/worker"
)

// flip changes the lowest bit of a number.
func flip(f *float32) { *f = math.Float32frombits(math.Float32bits(*f) ^ 1) }

// gradientFlipper is a machine that computes one bit of every gradient wrongly, from some step on.
type gradientFlipper struct{ countingNetwork }

const flipsFrom = 70

func (n gradientFlipper) Gradient(state []float32, b *graph.Batch, records int, step int64, v int, seed uint64, out []float32, rows []gradient.Rows) (nn.Result, error) {
	r, err := n.countingNetwork.Gradient(state, b, records, step, v, seed, out, rows)
	if step >= flipsFrom {
		flip(&out[tallySize-1])
	}
	return r, err
}

// stateFlipper is a machine whose memory flips one bit of its state in one step.
type stateFlipper struct{ countingNetwork }

func (n stateFlipper) Apply(state []float32, g gradient.Sum, stats [][]float32, step int64) error {
	err := n.countingNetwork.Apply(state, g, stats, step)
	if step%50 == 20 {
		flip(&state[tallySize-1])
	}
	return err
}

// workerOn is a worker on a machine that computes its network in a faulty way.
func (s *site) workerOn(node string, compute func(countingNetwork) job.Network) func(context.Context, int) error {
	options := s.options
	options.Compile = func(*graph.Model, nn.Options) (job.Network, error) { return compute(countingNetwork{&s.step}), nil }
	return func(ctx context.Context, id int) error {
		return worker.Run(ctx, worker.Config{
			Master: s.address, ID: id, Node: node, Credentials: s.credentials, Job: options, MasterTimeout: patience.Medium, Log: slog.New(slog.DiscardHandler),
		})
	}
}

func sound(n countingNetwork) job.Network { return n }

func TestAWorkerThatFlipsOneBitIsNamedWithinAThousandStepsAndSuspectCheckpointsAreWithdrawn(t *testing.T) {
	if testing.Short() {
		t.Skip("it computes thousands of steps; TestSpeculationFindsAWorkerThatComputesOneWrongBitWithinAThousandSteps tests the decision")
	}
	for name, c := range map[string]struct {
		compute func(countingNetwork) job.Network
		ends    string
	}{
		"of every gradient": {func(n countingNetwork) job.Network { return gradientFlipper{n} }, "different gradients of virtual worker"},
		"of its state":      {func(n countingNetwork) job.Network { return stateFlipper{n} }, "a worker's state differs"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, 28)
			s.job.Spec.Checkpoint = &trainingjob.Checkpoint{Steps: 60}
			s.config.Min, s.config.Max = 3, 3
			s.launcher.work = func(ctx context.Context, id int) error {
				if id == 1 || id == 3 { // 3 replaces it, on the same node
					return s.workerOn("bad-node", c.compute)(ctx, id)
				}
				return s.workerOn("good-node", sound)(ctx, id)
			}
			result := s.run(t.Context())
			step := s.step.Load()
			if result.Code != coordinator.ExitJobFailed || !strings.Contains(result.Reason, c.ends) || !strings.Contains(result.Reason, "node bad-node, ") || !strings.Contains(result.Reason, "portable kernels") {
				t.Fatalf("at step %d it ended with %+v", step, result)
			}
			if step > flipsFrom+1000 {
				t.Errorf("that was found at step %d", step)
			}
			s.launcher.close()
			// A master with healthy workers resumes from a trusted checkpoint, and ends with the right model.
			s.listen()
			s.launcher.work = s.workerOn("good-node", sound)
			s.config.LastWorker = 5
			s.expectDone(s.run(t.Context()))
			written, withdrawn := s.reporter.messages("Resumed"), s.reporter.messages("CheckpointInvalidated")
			t.Logf("found at step %d: %s; withdrawn: %d, then: %v", step, result.Reason, len(withdrawn), written)
		})
	}
}

// stuck is a machine that computes for ever, at the first gradient of a step, until it is released.
type stuck struct {
	countingNetwork
	at       int64
	released <-chan struct{}
}

func (n stuck) Gradient(state []float32, b *graph.Batch, records int, step int64, v int, seed uint64, out []float32, rows []gradient.Rows) (nn.Result, error) {
	if step >= n.at {
		<-n.released
	}
	return n.countingNetwork.Gradient(state, b, records, step, v, seed, out, rows)
}

func TestAWorkerThatSendsHeartbeatsAndComputesForEverDelaysNoOther(t *testing.T) {
	s := newSite(t, 2)
	s.config.Min, s.config.Max = 2, 2 // it is alive, and counts for the minimum
	released := make(chan struct{})
	s.launcher.work = func(ctx context.Context, id int) error {
		if id == 1 {
			return s.workerOn("slow-node", func(n countingNetwork) job.Network { return stuck{n, 10, released} })(ctx, id)
		}
		return s.workerOn("fast-node", sound)(ctx, id)
	}
	done := make(chan error, 1)
	go func() {
		done <- wait(t.Context(), "all steps", func() bool { return s.step.Load() == s.job.Schedule.Steps() })
		close(released)
	}()
	s.expectDone(s.run(t.Context()))
	if err := <-done; err != nil {
		t.Error(err)
	}
	s.launcher.running.Wait() // the master has dismissed them
	for _, err := range s.launcher.ended {
		if err != nil {
			t.Errorf("a worker ended with %v", err)
		}
	}
}

// halfway is a job that pauses in the middle of a step, until it is released: no worker completes the
// virtual worker that worker 1 begins first from step 12 on.
type halfway struct {
	mu       sync.Mutex
	at       string
	step     int64
	computed map[string]int // gradients of worker 0
	released chan struct{}
}

func gradientOf(step int64, v int) string {
	return fmt.Sprintf("virtual worker %d of step %d", v, step)
}

// begins is called by a worker, and returns when it may continue.
func (h *halfway) begins(worker int, step int64, v int) {
	h.mu.Lock()
	if h.at == "" && worker == 1 && step >= 12 {
		h.at, h.step = gradientOf(step, v), step
	}
	if worker == 0 {
		h.computed[gradientOf(step, v)]++
	}
	stands := h.at == gradientOf(step, v)
	h.mu.Unlock()
	if stands {
		<-h.released
	}
}

// times is how often worker 0 has computed each gradient of the step at which the job is paused; empty before.
func (h *halfway) times() map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	times := map[string]int{}
	for v := range virtualWorkers {
		if key := gradientOf(h.step, v); h.at != "" && h.computed[key] > 0 {
			times[key] = h.computed[key]
		}
	}
	return times
}

type halting struct {
	countingNetwork
	worker int
	*halfway
}

func (n halting) Gradient(state []float32, b *graph.Batch, records int, step int64, v int, seed uint64, out []float32, rows []gradient.Rows) (nn.Result, error) {
	n.begins(n.worker, step, v)
	return n.countingNetwork.Gradient(state, b, records, step, v, seed, out, rows)
}

func TestComputedGradientsAreSentToTheNextMasterAndNotComputedAgain(t *testing.T) {
	s := newSite(t, 1)
	s.config.Min, s.config.Max = 2, 2
	h := &halfway{computed: map[string]int{}, released: make(chan struct{})}
	s.launcher.work = func(ctx context.Context, id int) error {
		return s.workerOn("node", func(n countingNetwork) job.Network { return halting{n, id, h} })(ctx, id)
	}
	s.dies("in the middle of a step", func() bool { return len(h.times()) > 0 })
	close(h.released)
	s.expectDone(s.run(t.Context()))
	s.launcher.close()
	for gradient, times := range h.times() {
		if times != 1 {
			t.Errorf("%s was computed %d times by the same worker", gradient, times)
		}
	}
}
