package master_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/artifact/store"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire/wirepb"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/job"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/kube"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/master"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/worker"
)

// expectDone checks that every virtual worker of every step is in the model exactly once, and that no worker is pending
// any more.
func (s *site) expectDone(r master.Result) {
	s.Helper()
	if r.Code != coordinator.ExitDone || r.Model == nil {
		s.Fatalf("the master ended with %d: %s", r.Code, r.Reason)
	}
	if last := s.reporter.last; last.Phase != trainingjob.PhaseSucceeded || last.WorkersPending != 0 {
		s.Errorf("the last status is %s with %d workers pending", last.Phase, last.WorkersPending)
	}
	file, err := os.ReadFile(r.Model.Files[0])
	if err != nil {
		s.Fatal(err)
	}
	state := file[len(file)-4*tallySize:]
	for i := range tallySize {
		want := float32(0)
		if int64(i) < virtualWorkers*s.job.Schedule.Steps() {
			want = 1
		}
		if got := math.Float32frombits(binary.LittleEndian.Uint32(state[4*i:])); got != want {
			s.Errorf("virtual worker %d of step %d counts %v times, not %v", i%virtualWorkers, i/virtualWorkers, got, want)
		}
	}
}

func TestEveryVirtualWorkerCountsOnceWhileWorkersComeAndGo(t *testing.T) {
	s := newSite(t, 3)
	s.config.Max = 3
	s.launcher.work = s.worker(2 * time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	chaos := make(chan struct{})
	go func() {
		defer close(chaos)
		for next := int64(2); wait(ctx, "the next steps", func() bool { return s.step.Load() >= next }) == nil; next += 4 {
			s.launcher.Delete(s.launcher.any()) // in the middle of a step
		}
	}()
	result := s.run(t.Context())
	cancel()
	<-chaos
	s.expectDone(result)
	s.launcher.close()
	left := 0
	for _, err := range s.launcher.ended {
		if errors.Is(err, worker.ErrLeft) {
			left++
		} else if err != nil {
			t.Errorf("a worker ended with %v", err)
		}
	}
	if left < 10 {
		t.Errorf("only %d workers left on the way", left)
	}
}

func TestASilentWorkerIsEndedEvenIfItDoesNotRead(t *testing.T) {
	s := newSite(t, 2)
	s.config.Max, s.config.Silence = 2, time.Second
	ended, over := make(chan error, 1), make(chan struct{})
	s.launcher.work = func(ctx context.Context, id int) error {
		if id != 1 { // the job does not end before the silent worker
			return s.workerOn("node", func(n countingNetwork) job.Network { return stuck{n, 10, over} })(ctx, id)
		}
		defer close(over)
		v, closeVisit, err := s.visit(ctx, &wirepb.Join{Worker: 1, Numerics: kernel.NumericsVersion})
		if err != nil {
			return err
		}
		defer closeVisit()
		// It holds the first state, so it is assigned work at once, or is sent a state that it does not read.
		s.hello(v)
		if err := wait(ctx, "the suspicion", func() bool {
			s.reporter.mu.Lock()
			defer s.reporter.mu.Unlock()
			for _, n := range s.reporter.notices {
				if strings.Contains(n.Message, "worker 1 stopped responding") {
					return true
				}
			}
			return false
		}); err != nil {
			ended <- err
			return err
		}
		for {
			f := &wire.Frame{}
			if err := v.RecvMsg(f); err != nil {
				ended <- err
				return worker.ErrLeft
			}
			f.Release()
		}
	}
	s.expectDone(s.run(t.Context()))
	s.launcher.close()
	if err := <-ended; status.Code(err) != codes.Aborted || !strings.Contains(err.Error(), "no message for") {
		t.Errorf("the silent worker's stream ended with %v", err)
	}
}

func TestAWorkerThatReadsSlowlyDelaysNoOtherAndGetsANewState(t *testing.T) {
	s := newSite(t, 10)
	s.config.Max = 2
	var log []string
	s.launcher.work = func(ctx context.Context, id int) error {
		if id != 1 {
			return s.worker(time.Millisecond)(ctx, id)
		}
		var err error
		log, err = s.slowReader(ctx)
		return err
	}
	s.expectDone(s.run(t.Context()))
	s.launcher.running.Wait() // the master has dismissed them
	for _, err := range s.launcher.ended {
		if err != nil {
			t.Errorf("a worker ended with %v", err)
		}
	}
	if states := strings.Count(strings.Join(log, " "), "state"); states < 2 {
		t.Errorf("it read %d states: the first, and no new one: %v", states, log)
	}
}

// slowReader is worker 1. It sends heartbeats, but reads nothing while the others do a hundred steps; then it reads
// until its dismissal. It reads a state and the updates that follow it, possibly several times.
func (s *site) slowReader(ctx context.Context) (log []string, err error) {
	v, closeVisit, err := s.visit(ctx, &wirepb.Join{Worker: 1, Numerics: kernel.NumericsVersion})
	if err != nil {
		return nil, err
	}
	defer closeVisit()
	beat, stop := context.WithCancel(ctx)
	beating := make(chan struct{})
	go func() {
		defer close(beating)
		for beat.Err() == nil {
			v.queue.Urgent(&wirepb.Message{Kind: &wirepb.Message_Heartbeat{Heartbeat: &wirepb.Heartbeat{}}})
			select {
			case <-time.After(50 * time.Millisecond):
			case <-beat.Done():
			}
		}
	}()
	defer func() { stop(); <-beating }()
	if err := wait(ctx, "step 6", func() bool { return s.step.Load() >= 6 }); err != nil {
		return nil, err
	}
	s.hello(v) // too far behind for updates
	if err := wait(ctx, "step 106", func() bool { return s.step.Load() >= 106 }); err != nil {
		return nil, err
	}
	at := int64(-1)
	for {
		f := &wire.Frame{}
		if err := v.RecvMsg(f); err != nil {
			return log, err
		}
		f.Release()
		switch m := f.Message; {
		case m.GetState() != nil:
			at = m.GetState().Step
			log = append(log, fmt.Sprintf("state %d", at))
		case m.GetUpdate() != nil:
			if m.GetUpdate().Step != at {
				return log, fmt.Errorf("an update of step %d at step %d, after %v", m.GetUpdate().Step, at, log)
			}
			at++
			log = append(log, fmt.Sprintf("update %d", at))
		case m.GetDismissal() != nil:
			return log, nil
		}
	}
}

func TestAMasterThatIsAskedToStopExits143AndItsWorkersReconnectToTheNext(t *testing.T) {
	s := newSite(t, 10)
	s.launcher.work = s.worker(time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stopped := make(chan error, 1)
	go func() {
		stopped <- wait(t.Context(), "some steps", func() bool { return s.step.Load() > 5 })
		cancel()
	}()
	result := s.run(ctx)
	if err := <-stopped; err != nil || result.Code != coordinator.ExitInterrupted || result.Model != nil {
		t.Errorf("it ended with %+v %v", result, err)
	}
	if phase := s.reporter.phase(); phase != trainingjob.PhaseWaiting {
		t.Errorf("its last status is %s", phase)
	}
	s.config.Existing, s.config.LastWorker = s.launcher.found(), 0
	s.listenOn(s.address)
	s.expectDone(s.run(t.Context()))
	s.launcher.running.Wait()
	if len(s.launcher.ended) != 1 || s.launcher.ended[0] != nil {
		t.Errorf("the worker ended with %v", s.launcher.ended)
	}
}

func TestAWorkerThatFindsNoMasterGivesUp(t *testing.T) {
	s := newSite(t, 1)
	if err := s.config.Listener.Close(); err != nil {
		t.Fatal(err)
	}
	err := worker.Run(t.Context(), worker.Config{
		Master: s.address, Credentials: s.credentials, Job: s.options, MasterTimeout: 1, Log: slog.New(slog.DiscardHandler),
	})
	if !errors.Is(err, worker.ErrMasterGone) {
		t.Errorf("it ended with %v", err)
	}
}

func TestAMasterEndsWhenAnotherHasTakenOver(t *testing.T) {
	s := newSite(t, 100)
	s.launcher.work = s.worker(time.Millisecond)
	waited := make(chan error, 1)
	go func() {
		waited <- wait(t.Context(), "some steps", func() bool { return s.step.Load() > 5 })
		s.lost <- "generation 7 has the Lease"
	}()
	result := s.run(t.Context())
	if err := <-waited; err != nil || result.Code != coordinator.ExitInterrupted || !strings.Contains(result.Reason, "generation 7") {
		t.Errorf("it ended with %+v, %v", result, err)
	}
}

func TestAMasterOfAFinishedJobDismissesTheWorkersThatTheLastOneLeft(t *testing.T) {
	s := newSite(t, 1)
	s.expectDone(s.run(t.Context()))
	s.launcher.close()
	s.launcher.ended = nil
	s.listen()
	s.launcher.Create(5, false)
	s.config.Existing = []coordinator.PodChanged{{Worker: 5, State: coordinator.PodRunning}}
	s.expectDone(s.run(t.Context()))
	s.launcher.running.Wait()
	if len(s.launcher.ended) != 1 || s.launcher.ended[0] != nil {
		t.Errorf("worker 5 ended with %v", s.launcher.ended)
	}
	if phase := s.reporter.phase(); phase != trainingjob.PhaseSucceeded {
		t.Errorf("the status is %s", phase)
	}
}

// small is a store for models an eighth as large as a ConfigMap takes.
type small struct{ store.Directory }

func (small) Fits(bytes int) error { return kube.Store{}.Fits(8 * bytes) }

func TestAModelThatCannotBeSavedEndsTheJobBeforeItBegins(t *testing.T) {
	s := newSite(t, 1)
	s.config.Store = small{store.Directory{Root: t.TempDir()}}
	result := s.run(t.Context())
	if result.Code != coordinator.ExitJobFailed || !strings.Contains(result.Reason, "set output") {
		t.Errorf("it ended with %+v", result)
	}
	if phase := s.reporter.phase(); phase != trainingjob.PhaseFailed || s.step.Load() != 0 {
		t.Errorf("phase %s after %d steps", phase, s.step.Load())
	}
}
