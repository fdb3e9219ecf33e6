package master_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/dataset"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/artifact/store"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/datacmd"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire/wirepb"
)

// validation replaces a site's validation data with so many records, in a directory. It does not reload them.
func (s *site) validation(dir string, records int64) {
	s.Helper()
	if err := os.RemoveAll(dir); err != nil {
		s.Fatal(err)
	}
	if _, err := datacmd.Synth(s.Context(), dataset.Digits, records, 5, datacmd.Output{Dir: dir}); err != nil {
		s.Fatal(err)
	}
	s.spec.Data.Validation = dir
}

// steps lists the steps of evaluations, with the number of their records.
func steps(all []trainingjob.Measurement) map[int64]int64 {
	made := map[int64]int64{}
	for _, e := range all {
		made[e.Step] = e.Records
	}
	return made
}

func TestAWorkerWhoseValidationDataWereReplacedFailsWithTheFileThatDiffers(t *testing.T) {
	for name, records := range map[string]int64{"with fewer records": 60, "with as many": 150} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, 2)
			dir := filepath.Join(t.TempDir(), "validation")
			s.validation(dir, 150)
			s.spec.Evaluation = &trainingjob.Evaluation{Steps: 10}
			s.reload()
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			if _, err := datacmd.Synth(t.Context(), dataset.Digits, records, 6, datacmd.Output{Dir: dir}); err != nil {
				t.Fatal(err)
			}
			go func() {
				_ = wait(t.Context(), "two failures", func() bool { return len(s.reporter.messages("WorkerFailed")) >= 2 }) // checked below
				s.lost <- "that is all"
			}()
			result := s.run(t.Context())
			for _, failure := range s.reporter.messages("WorkerFailed") {
				if !strings.Contains(failure, dir) || !strings.Contains(failure, "every worker must see the same files") {
					t.Errorf("the notice is %q", failure)
				}
			}
			if n := len(s.reporter.messages("Evaluated")); n > 0 || result.Model != nil {
				t.Errorf("%d evaluations, and %+v", n, result)
			}
		})
	}
}

func TestARestartedMasterHasItsWorkersReadValidationDataThatWereReplaced(t *testing.T) {
	s := newSite(t, 3)
	dir := filepath.Join(t.TempDir(), "validation")
	s.validation(dir, 150)
	s.spec.Evaluation = &trainingjob.Evaluation{Steps: 10}
	s.reload()
	s.job.Spec.Checkpoint = &trainingjob.Checkpoint{Steps: s.job.Schedule.Steps()} // none on the way
	s.launcher.work = s.worker(2 * time.Millisecond)
	s.dies("after an evaluation", func() bool { return s.step.Load() >= 15 })
	s.validation(dir, 60)
	s.reload()
	s.job.Spec.Checkpoint = &trainingjob.Checkpoint{Steps: s.job.Schedule.Steps()}
	result := s.run(t.Context())
	s.expectDone(result)
	back := s.reporter.takenBack(t)
	if len(back) != 1 || back[0] < 14 {
		t.Errorf("the worker's state was lost with its data: states were taken back at %v", back)
	}
	want := map[int64]int64{}
	for step := (back[0] + 9) / 10 * 10; step <= 90; step += 10 {
		want[step] = 60
	}
	if got := steps(result.Model.Evaluations); !reflect.DeepEqual(got, want) {
		t.Errorf("model.json has evaluations at steps, of records %v, and they should be %v", got, want)
	}
}

func TestEvaluationsOfOtherValidationDataAreLeftOutWhenAJobResumes(t *testing.T) {
	s := newSite(t, 2)
	s.spec.Data.Validation = "synthetic://digits?records=150&seed=5"
	s.spec.Evaluation = &trainingjob.Evaluation{Steps: 10}
	s.reload()
	s.launcher.work = s.worker(time.Millisecond)
	s.runUntil(25)
	s.spec.Data.Validation = "synthetic://digits?records=60&seed=5"
	s.reload()
	result := s.run(t.Context())
	s.expectDone(result)
	for step, records := range steps(result.Model.Evaluations) {
		if records != 60 || step < 25 {
			t.Errorf("model.json has an evaluation at step %d on %d records", step, records)
		}
	}
	if reported := s.reporter.messages("EvaluationsSkipped"); len(reported) != 1 || !strings.Contains(reported[0], "which used other validation data") {
		t.Errorf("of those that it left out it said %q", reported)
	}
}

func TestAFinishedJobIsEvaluatedOnTheValidationDataThatItIsGiven(t *testing.T) {
	s := newSite(t, 1)
	s.expectDone(s.run(t.Context()))
	again := func(validation string) (loss float64, records map[int64]int64) {
		t.Helper()
		s.launcher.close()
		s.spec.Data.Validation = validation
		s.reload()
		s.listen()
		result := s.run(t.Context())
		s.expectDone(result)
		info, err := s.config.Store.(store.Directory).Finished(s.job.Identity.Job)
		if err != nil || info.SHA256 != result.Model.SHA256 || info.Validation != s.job.Identity.Validation {
			t.Errorf("model.json is %+v: %v", info, err)
		}
		return info.Loss, steps(info.Evaluations)
	}
	const first, second = "synthetic://digits?records=150&seed=5", "synthetic://digits?records=60&seed=5"
	for _, data := range []struct {
		path    string
		records int64
	}{{first, 150}, {second, 60}, {second, 60}} {
		if loss, made := again(data.path); loss != 30*virtualWorkers || !reflect.DeepEqual(made, map[int64]int64{30: data.records}) {
			t.Errorf("on %s: loss %v, evaluations %v", data.path, loss, made)
		}
	}
	if n := len(s.reporter.messages("EvaluatingFinishedModel")); n != 2 {
		t.Errorf("it was evaluated %d times", n)
	}

	t.Run("or says that it was not", func(t *testing.T) {
		if err := os.RemoveAll(filepath.Dir(filepath.Dir(s.checkpoints()[0]))); err != nil {
			t.Fatal(err)
		}
		s.spec.Data.Validation = first
		s.reload()
		s.listen()
		result := s.run(t.Context())
		if result.Code != coordinator.ExitJobFailed || !strings.Contains(result.Reason, "was not evaluated") || !strings.Contains(result.Reason, "model.safetensors") {
			t.Errorf("%+v", result)
		}
	})
	t.Run("and says what it lacks", func(t *testing.T) {
		s.spec.Data.Validation, s.spec.Evaluation = second, &trainingjob.Evaluation{Steps: 7}
		s.reload()
		s.listen()
		s.expectDone(s.run(t.Context()))
		if reported := s.reporter.messages("EvaluationsMissing"); len(reported) != 1 || !strings.Contains(reported[0], "4 evaluations before step 30, the first of step 7") {
			t.Errorf("the notice is %q", reported)
		}
	})
}

func TestAWorkerThatBreaksTheProtocolAgainAndAgainIsRefusedWithWhatItDid(t *testing.T) {
	s := newSite(t, 100)
	s.launcher.work = s.worker(time.Millisecond)
	refused := make(chan error, 1)
	go func() {
		refused <- s.breaksTheProtocol()
		s.lost <- "that is all"
	}()
	s.run(t.Context())
	if err := <-refused; err == nil || !strings.Contains(err.Error(), "disconnected 5 times in a row") || !strings.Contains(err.Error(), "a gradient of virtual workers 3 to 1") {
		t.Errorf("got error: %v", err)
	}
}

// breaksTheProtocol is a worker that sends invalid gradients, until it is refused.
func (s *site) breaksTheProtocol() error {
	for {
		err := s.saysHello(s.Context(), &wirepb.Hello{Lineage: s.job.Identity.Lineage, JobDigest: s.job.Identity.Job},
			&wirepb.Message{Kind: &wirepb.Message_Gradient{Gradient: &wirepb.Gradient{Lo: 3, Hi: 1}}})
		if err != nil && !strings.Contains(err.Error(), "a gradient of virtual workers") || err != nil && strings.Contains(err.Error(), "in a row") {
			return err
		}
	}
}
