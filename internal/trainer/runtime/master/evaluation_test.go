package master_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/artifact/store"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/job"
)

// evaluated configures the site's job to evaluate its state every 10 steps.
func (s *site) evaluated() {
	s.Helper()
	s.spec.Data.Validation = "synthetic://digits?records=1500&seed=5"
	s.spec.Evaluation = &trainingjob.Evaluation{Steps: 10}
	s.reload()
}

// reload loads the job again from the current spec.
func (s *site) reload() {
	s.Helper()
	var err error
	if s.text, err = json.Marshal(s.spec); err != nil {
		s.Fatal(err)
	}
	j, err := job.Load(s.Context(), s.spec, "model.py", s.model, s.options)
	if err != nil {
		s.Fatal(err)
	}
	if err := s.job.Close(); err != nil { // newSite closes the new one
		s.Fatal(err)
	}
	s.job, s.config.Job, s.config.JobJSON = j, j, s.text
}

func TestEvaluationsAreNotLostWithAMasterThatDiesInTheMiddleOfThem(t *testing.T) {
	undisturbed := newSite(t, 2)
	undisturbed.evaluated()
	first := undisturbed.run(t.Context())
	undisturbed.expectDone(first)
	want := first.Model.Evaluations
	if len(want) != 6 || want[0].Step != 10 || want[0].Records != 1500 || want[0].Loss != 10*virtualWorkers || want[5].Loss != 60*virtualWorkers {
		t.Fatalf("%+v", want)
	}

	s := newSite(t, 2)
	s.evaluated()
	s.job.Spec.Checkpoint = &trainingjob.Checkpoint{Steps: s.job.Schedule.Steps()} // none on the way
	s.config.Max = 2
	s.launcher.work = s.worker(2 * time.Millisecond)
	const deaths = 3
	for death := range deaths {
		at := int64(10 * (death + 1))
		s.dies("in an evaluation", func() bool {
			return s.step.Load() >= at && s.reporter.phase() == trainingjob.PhaseEvaluating
		})
	}
	last := s.run(t.Context())
	s.expectDone(last)
	if got := last.Model.Evaluations; !reflect.DeepEqual(got, want) {
		t.Errorf("after %d deaths %+v, and without %+v", deaths, got, want)
	}
	info, err := s.config.Store.(store.Directory).Finished(s.job.Identity.Job)
	if err != nil || !reflect.DeepEqual(info.Evaluations, want) {
		t.Errorf("model.json has %+v: %v", info, err)
	}
}
