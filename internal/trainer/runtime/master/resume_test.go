package master_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/artifact/store"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/master"
)

// messages lists the messages of the notices with a reason.
func (r *reporter) messages(reason string) (messages []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.notices {
		if n.Reason == reason {
			messages = append(messages, n.Message)
		}
	}
	return messages
}

// runUntil runs the master until so many steps are applied, asks it to stop, and waits for its workers' end.
func (s *site) runUntil(step int64) {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	defer cancel()
	waited := make(chan error, 1)
	go func() {
		waited <- wait(s.Context(), "some steps", func() bool { return s.step.Load() >= step })
		cancel()
	}()
	if result := s.run(ctx); result.Code != coordinator.ExitInterrupted {
		s.Fatalf("it ended with %+v", result)
	}
	if err := <-waited; err != nil {
		s.Fatal(err)
	}
	s.launcher.close()
	s.step.Store(0)
	s.listen()
}

func (s *site) checkpoints() []string {
	s.Helper()
	paths, err := filepath.Glob(filepath.Join(s.config.Store.(store.Directory).Root, store.CheckpointsDir, "*", "*"))
	if err != nil {
		s.Fatal(err)
	}
	return paths
}

func TestAMasterResumesFromTheCheckpointOfTheOneThatWasStopped(t *testing.T) {
	s := newSite(t, 2)
	s.launcher.work = s.worker(time.Millisecond)
	for _, step := range []int64{10, 25, 40} {
		s.runUntil(step) // and with it all its workers
	}
	s.expectDone(s.run(t.Context()))
	if resumed := s.reporter.messages("Resumed"); len(resumed) != 3 {
		t.Errorf("three masters resumed from %v", resumed)
	}
	if back := s.reporter.takenBack(t); len(back) > 0 {
		t.Errorf("no worker was left, and states were taken back: %v", back)
	}
}

func TestADamagedCheckpointIsNamedAndTheOneBeforeItIsUsed(t *testing.T) {
	s := newSite(t, 2)
	s.launcher.work = s.worker(time.Millisecond)
	s.runUntil(10)
	s.runUntil(20)
	paths := s.checkpoints()
	if len(paths) != 2 {
		t.Fatalf("two masters were stopped, and there are %v", paths)
	}
	file, err := os.ReadFile(paths[1])
	if err != nil {
		t.Fatal(err)
	}
	file[len(file)/2] ^= 1
	if err := os.WriteFile(paths[1], file, 0o600); err != nil {
		t.Fatal(err)
	}
	s.expectDone(s.run(t.Context()))
	refused, resumed := s.reporter.messages("CheckpointRejected"), s.reporter.messages("Resumed")
	if len(refused) != 1 || !strings.Contains(refused[0], paths[1]) || !strings.Contains(refused[0], "damaged") {
		t.Errorf("the notice about the damaged one is %q", refused)
	}
	if !strings.Contains(resumed[len(resumed)-1], paths[0]) {
		t.Errorf("it resumed: %q", resumed)
	}
}

// full is a store without room for checkpoints.
type full struct{ store.Directory }

func (full) SaveCheckpoint(context.Context, master.CheckpointName, []byte, func(context.Context) error) error {
	return errors.New("no space left on device")
}

func TestACheckpointThatCannotBeWrittenIsAnEventAndTrainingContinues(t *testing.T) {
	s := newSite(t, 2)
	s.config.Store = full{store.Directory{Root: t.TempDir()}}
	s.expectDone(s.run(t.Context()))
	if reported := s.reporter.messages("CheckpointNotWritten"); len(reported) == 0 || !strings.Contains(reported[0], "no space left") || !strings.Contains(reported[0], "step 30") {
		t.Errorf("the notice is %q", reported)
	}
}

func TestTheEndOfEachEpochIsKeptForTheEpochsThatMayFollow(t *testing.T) {
	s := newSite(t, 3)
	s.config.Store = store.Directory{Root: t.TempDir(), KeepCheckpoints: 2}
	s.launcher.work = s.worker(2 * time.Millisecond)
	s.expectDone(s.run(t.Context()))
	var names []string
	for _, path := range s.checkpoints() {
		names = append(names, filepath.Base(path))
	}
	if last := "step-000000000090.safetensors"; len(names) != 2 || !slices.Contains(names, last) {
		t.Errorf("there are %v", names)
	}
}
