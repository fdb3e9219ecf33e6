package master_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/artifact/store"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/gradient"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/nn"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire/wirepb"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/job"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/master"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/worker"
)

// slowHash is worker.Hash, one call of which lasts until it is released.
type slowHash struct {
	slow              int64 // the number of that call
	calls             atomic.Int64
	reached, released chan struct{}
}

func newSlowHash(call int64) *slowHash {
	return &slowHash{slow: call, reached: make(chan struct{}), released: make(chan struct{})}
}

func (h *slowHash) hash(state []float32) string {
	if h.calls.Add(1) == h.slow {
		close(h.reached)
		<-h.released
	}
	return worker.Hash(state)
}

// heartbeats waits for so many of the master's, each of which comes with a turn of its loop.
func (s *site) heartbeats(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, patience.Medium)
	defer cancel()
	v, closeVisit, err := s.visit(ctx, &wirepb.Join{Worker: 9, Numerics: kernel.NumericsVersion})
	if err != nil {
		return err
	}
	defer closeVisit()
	for n > 0 {
		f := &wire.Frame{}
		if err := v.RecvMsg(f); err != nil {
			return err
		}
		if f.Release(); f.Message.GetHeartbeat() != nil {
			n--
		}
	}
	return nil
}

func TestAStateWhoseHashTakesLongSilencesNoMasterAndLosesNoWorker(t *testing.T) {
	const beats = 20
	for name, c := range map[string]struct {
		call      int64
		restarted bool
	}{
		"of the master, for the first hello":           {call: 1},
		"of the master, at a step where all report it": {call: 2},
		"of a worker, which a new master continues":    {call: 1, restarted: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, 4)
			s.config.Max = 2
			s.job.Spec.Checkpoint = &trainingjob.Checkpoint{Steps: s.job.Schedule.Steps()} // none on the way
			s.launcher.work = s.worker(time.Millisecond)
			if c.restarted {
				s.diesInAStep()
			}
			slow := newSlowHash(c.call)
			s.config.Hash = slow.hash
			beating := make(chan error, 1)
			go func() {
				<-slow.reached
				beating <- s.heartbeats(t.Context(), beats)
				close(slow.released)
			}()
			s.expectDone(s.run(t.Context()))
			if err := <-beating; err != nil {
				t.Error(err)
			}
			for _, reason := range []string{"WorkerLeft", "WorkerFailed", "StateDiffers"} {
				if messages := s.reporter.messages(reason); len(messages) > 0 {
					t.Errorf("%s: %v", reason, messages)
				}
			}
		})
	}
}

// slowApply is a machine that takes long to apply one update.
type slowApply struct {
	countingNetwork
	reached, released chan struct{}
}

const slowStep = 5

func (n slowApply) Apply(state []float32, g gradient.Sum, stats [][]float32, step int64) error {
	if step == slowStep {
		close(n.reached)
		<-n.released
	}
	return n.countingNetwork.Apply(state, g, stats, step)
}

func TestAMasterThatAppliesUpdatesSlowlyIsNotSilentAndLetsFewPileUp(t *testing.T) {
	s := newSite(t, 2)
	slow := slowApply{countingNetwork{&atomic.Int64{}}, make(chan struct{}), make(chan struct{})}
	usual := s.options
	s.options.Compile = func(*graph.Model, nn.Options) (job.Network, error) { return slow, nil }
	s.reload()
	s.options = usual
	beating := make(chan error, 1)
	go func() {
		<-slow.reached
		err := s.heartbeats(t.Context(), 20)
		if done := s.step.Load(); done > slowStep+4 {
			err = errors.Join(err, fmt.Errorf("the worker has %d steps, and the master applies update %d", done, slowStep))
		}
		beating <- err
		close(slow.released)
	}()
	s.expectDone(s.run(t.Context()))
	if err := <-beating; err != nil {
		t.Error(err)
	}
}

// wideNetwork has a state that is far larger than its updates.
type wideNetwork struct{ countingNetwork }

const wideSize = 1 << 24

func (wideNetwork) StateSize() int { return wideSize }

func (s *site) widen() {
	s.Helper()
	s.options.Compile = func(*graph.Model, nn.Options) (job.Network, error) { return wideNetwork{countingNetwork{&s.step}}, nil }
	s.reload()
	s.job.Spec.Checkpoint = &trainingjob.Checkpoint{Steps: s.job.Schedule.Steps()}
}

// beyondRetained waits for more steps than the master retains updates of.
func (s *site) beyondRetained(ctx context.Context) error {
	at := s.step.Load()
	return wait(ctx, "some steps", func() bool { return s.step.Load() > at+5 })
}

// joiningWorker joins at step 0 and reads nothing until it is told to.
func (s *site) joiningWorker(ctx context.Context, id int) (*visitor, func(), error) {
	v, closeVisit, err := s.visit(ctx, &wirepb.Join{Worker: int64(id), Numerics: kernel.NumericsVersion})
	if err != nil {
		return nil, nil, err
	}
	v.queue.Send(&wirepb.Message{Kind: &wirepb.Message_Hello{Hello: &wirepb.Hello{
		Lineage: s.job.Identity.Lineage, JobDigest: s.job.Identity.Job, Hash: "of a state that is too old",
	}}})
	return v, closeVisit, wait(ctx, fmt.Sprintf("worker %d joins", id), func() bool {
		s.reporter.mu.Lock()
		defer s.reporter.mu.Unlock()
		for _, n := range s.reporter.notices {
			if strings.HasPrefix(n.Message, fmt.Sprintf("worker %d joined", id)) {
				return true
			}
		}
		return false
	})
}

// state reads until it has received a whole state, and checks it.
func (v *visitor) state() error {
	var whole wire.Assembly
	for {
		f := &wire.Frame{}
		if err := v.RecvMsg(f); err != nil {
			return err
		}
		s := f.Message.GetState()
		if s == nil {
			f.Release()
			continue
		}
		floats, err := whole.Add(f, s.Piece, wideSize, func() []float32 { return make([]float32, wideSize) })
		f.Release()
		if err != nil || floats != nil {
			return errors.Join(err, counts(floats, s.Step))
		}
	}
}

// counts checks that a state holds each virtual worker of the steps before it once, and nothing else.
func counts(state []float32, step int64) error {
	for i := range state {
		want := float32(0)
		if int64(i) < virtualWorkers*step {
			want = 1
		}
		if state[i] != want {
			return fmt.Errorf("the state of step %d has %v at %d", step, state[i], i)
		}
	}
	return nil
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestTenWorkersThatJoinAtTenStepsCostTheMemoryOfOneStateMore(t *testing.T) {
	s := newSite(t, 200)
	s.widen()
	s.launcher.work = s.worker(time.Millisecond)
	joined := make(chan error, 1)
	go func() {
		joined <- s.tenJoin(t.Context())
		s.lost <- "that is all"
	}()
	s.run(t.Context())
	if err := <-joined; err != nil {
		t.Error(err)
	}
}

func (s *site) tenJoin(ctx context.Context) error {
	if err := s.beyondRetained(ctx); err != nil {
		return err
	}
	before := heap()
	var visitors []*visitor
	for i := range 10 {
		v, closeVisit, err := s.joiningWorker(ctx, 10+i)
		if err != nil {
			return err
		}
		defer closeVisit()
		visitors = append(visitors, v)
		if err := s.beyondRetained(ctx); err != nil {
			return err
		}
	}
	const state = 4 * wideSize
	more := heap() - before
	s.Logf("ten workers join, and the master holds %d bytes more; a state has %d", more, state)
	if more > state*3/2 { // the streams hold something too
		s.Error("that is more than one state")
	}
	received := make(chan error, len(visitors))
	for _, v := range visitors {
		go func() { received <- v.state() }()
	}
	var errs []error
	for range visitors {
		errs = append(errs, <-received)
	}
	return errors.Join(errs...)
}

func TestAWorkerThatReadsNothingOfItsStateKeepsOthersFromTheirsForAWhileOnly(t *testing.T) {
	s := newSite(t, 200)
	s.widen()
	s.config.Silence = time.Second
	s.launcher.work = s.worker(time.Millisecond)
	joined := make(chan error, 1)
	go func() {
		joined <- s.oneReads(t.Context())
		s.lost <- "that is all"
	}()
	s.run(t.Context())
	if err := <-joined; err != nil {
		t.Error(err)
	}
}

func (s *site) oneReads(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := s.beyondRetained(ctx); err != nil {
		return err
	}
	for id := 10; ; id++ {
		v, closeVisit, err := s.joiningWorker(ctx, id)
		if err != nil {
			return err
		}
		defer closeVisit()
		go v.beat(ctx)
		if id > 10 {
			return v.state()
		}
		if err := s.beyondRetained(ctx); err != nil {
			return err
		}
	}
}

// beat sends heartbeats.
func (v *visitor) beat(ctx context.Context) {
	for ticker := time.NewTicker(100 * time.Millisecond); ; {
		select {
		case <-ticker.C:
			v.queue.Urgent(&wirepb.Message{Kind: &wirepb.Message_Heartbeat{Heartbeat: &wirepb.Heartbeat{}}})
		case <-ctx.Done():
			ticker.Stop()
			return
		}
	}
}

func TestAWorkerThatSendsResultsBeforeItsHelloIsAnsweredIsLost(t *testing.T) {
	s := newSite(t, 2)
	slow := newSlowHash(1)
	s.config.Hash = slow.hash
	log := &journal{}
	s.config.Log = log.logger()
	visited := make(chan error, 1)
	go func() {
		defer close(slow.released)
		v, closeVisit, err := s.visit(t.Context(), &wirepb.Join{Worker: 9, Numerics: kernel.NumericsVersion})
		if err != nil {
			visited <- err
			return
		}
		defer closeVisit()
		s.hello(v)
		v.queue.SendTensor(&wirepb.Message{Kind: &wirepb.Message_Gradient{Gradient: &wirepb.Gradient{
			Hi: 1, LossSums: []float64{math.Pi}, Counts: []int64{0}, Hashes: []uint32{0},
		}}}, make([]float32, tallySize), nil)
		for err == nil {
			f := &wire.Frame{}
			if err = v.RecvMsg(f); err == nil {
				f.Release()
			}
		}
		visited <- err
	}()
	s.expectDone(s.run(t.Context()))
	if err := <-visited; err == nil || !strings.Contains(err.Error(), "before its hello was answered") {
		t.Errorf("its stream ended with %v", err)
	}
}

func TestAWorkerThatIsGoneBeforeItsHelloIsAnsweredNeverJoinedAndMayConnectAgain(t *testing.T) {
	s := newSite(t, 2)
	slow := newSlowHash(1)
	s.config.Hash = slow.hash
	visited := make(chan error, 1)
	go func() {
		defer close(slow.released)
		hello := s.visitOnce(t.Context(), func(v *visitor) {
			s.hello(v)
			<-slow.reached
		})
		visited <- errors.Join(hello, wait(t.Context(), "its second stream", func() bool {
			return s.visitOnce(t.Context(), func(*visitor) {}) == nil
		}))
	}()
	s.launcher.work = func(ctx context.Context, id int) error {
		<-slow.released
		return s.worker(0)(ctx, id)
	}
	s.expectDone(s.run(t.Context()))
	if err := <-visited; err != nil {
		t.Error(err)
	}
	for _, message := range append(s.reporter.messages("WorkerJoined"), s.reporter.messages("WorkerLeft")...) {
		if strings.Contains(message, "worker 9") {
			t.Error(message)
		}
	}
}

// visitOnce is worker 9, which does something when it has received the job, and is gone.
func (s *site) visitOnce(ctx context.Context, do func(*visitor)) error {
	v, closeVisit, err := s.visit(ctx, &wirepb.Join{Worker: 9, Numerics: kernel.NumericsVersion})
	if err != nil {
		return err
	}
	defer closeVisit()
	for {
		f := &wire.Frame{}
		if err := v.RecvMsg(f); err != nil {
			return err
		}
		if f.Release(); f.Message.GetJob() != nil {
			do(v)
			return nil
		}
	}
}

// unreadable is a store whose models cannot be listed.
type unreadable struct{ store.Directory }

func (unreadable) Finished(string) (*master.ModelInfo, error) {
	return nil, errors.New("input/output error")
}

func TestAMasterThatCannotStartClosesItsListener(t *testing.T) {
	for name, breaks := range map[string]func(*master.Config){
		"because of its store":       func(c *master.Config) { c.Store = unreadable{c.Store.(store.Directory)} },
		"because of its certificate": func(c *master.Config) { c.Credentials.Certificate = []byte("none") },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, 1)
			breaks(&s.config)
			if _, err := master.Run(t.Context(), s.config); err == nil {
				t.Error("it ran")
			}
			if err := s.config.Listener.Close(); !errors.Is(err, net.ErrClosed) {
				t.Errorf("its listener was open: %v", err)
			}
		})
	}
}
