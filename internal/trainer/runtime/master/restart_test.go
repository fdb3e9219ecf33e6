package master_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
)

// takenBack lists the steps at which masters resumed with a worker's state.
func (r *reporter) takenBack(t *testing.T) (steps []int64) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.notices {
		if n.Reason == "StateRestored" {
			var step int64
			if _, err := fmt.Sscanf(n.Message, "training resumes from step %d,", &step); err != nil {
				t.Fatalf("%q: %v", n.Message, err)
			}
			steps = append(steps, step)
		}
	}
	return steps
}

func TestARestartedMasterResumesFromItsWorkersState(t *testing.T) {
	s := newSite(t, 3)
	s.job.Spec.Checkpoint = &trainingjob.Checkpoint{Steps: s.job.Schedule.Steps()} // none on the way
	s.config.Max = 3
	s.launcher.work = s.worker(2 * time.Millisecond)
	var died []int64
	for range 5 {
		died = append(died, s.diesInAStep())
	}
	s.expectDone(s.run(t.Context()))
	s.launcher.running.Wait() // the master has dismissed them
	for _, err := range s.launcher.ended {
		if err != nil {
			t.Errorf("a worker ended with %v", err)
		}
	}
	// Only the last published update may be lost with the master.
	back := s.reporter.takenBack(t)
	if !slices.EqualFunc(back, died, func(taken, died int64) bool { return taken >= died-1 }) {
		t.Errorf("masters died at steps %v, and the next ones resumed from %v", died, back)
	}
}

// dies runs a master until it dies at a given moment, and prepares its workers and its address for the next.
func (s *site) dies(when string, isIt func() bool) {
	s.Helper()
	ended := make(chan error, 1)
	go func() {
		err := wait(s.Context(), when, isIt)
		s.lost <- "it dies " + when
		ended <- err
	}()
	if result := s.run(s.Context()); result.Code != coordinator.ExitInterrupted {
		s.Fatalf("the master ended with %+v", result)
	}
	if err := <-ended; err != nil {
		s.Fatal(err)
	}
	s.config.Existing, s.config.LastWorker = s.launcher.found(), s.config.Max-1
	s.listenOn(s.address)
}

// diesInAStep runs a master until it dies in the middle of a step, some steps on. It returns how many steps were done.
func (s *site) diesInAStep() (step int64) {
	s.Helper()
	at := s.step.Load() + 12
	s.dies("in the middle of a step", func() bool { return s.step.Load() >= at })
	return s.step.Load()
}

func TestAMasterReportsThatItWaitsForAWorkerThatIsAhead(t *testing.T) {
	s := newSite(t, 1)
	s.config.Existing = []coordinator.PodChanged{{Worker: 7, State: coordinator.PodRunning, Minimum: true}}
	stop := make(chan error, 1)
	go func() {
		stop <- wait(t.Context(), "the status", func() bool {
			s.reporter.mu.Lock()
			defer s.reporter.mu.Unlock()
			return strings.Contains(s.reporter.last.Message, "waiting for the hello of worker 7")
		})
		s.lost <- "that is all"
	}()
	s.run(t.Context())
	if err := <-stop; err != nil {
		t.Error(err)
	}
}
