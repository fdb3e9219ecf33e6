package trainingjob

import (
	"math"
	"strings"
	"testing"
)

func TestProblemsNameTheLimitOfNumbersThatWouldOverflow(t *testing.T) {
	for field, set := range map[string]func(j *Job, n int64){
		"training.epochs":            func(j *Job, n int64) { j.Training.Epochs = int(n) },
		"training.minibatch_size":    func(j *Job, n int64) { j.Training.MinibatchSize = int(n) },
		"training.grads_to_wait":     func(j *Job, n int64) { j.Training.GradsToWait = int(n) },
		"data.records_per_task":      func(j *Job, n int64) { j.Data.RecordsPerTask = int(n) },
		"checkpoint.interval_steps":  func(j *Job, n int64) { j.Checkpoint = &Checkpoint{Steps: n} },
		"checkpoint.max_to_keep":     func(j *Job, n int64) { k := int(n); j.Checkpoint = &Checkpoint{KeepMax: &k} },
		"evaluation.interval_steps":  func(j *Job, n int64) { j.Evaluation = &Evaluation{Steps: n} },
		"evaluation.interval_epochs": func(j *Job, n int64) { j.Evaluation = &Evaluation{Epochs: n} },
	} {
		for _, n := range []int64{1 << 62, math.MaxInt64} {
			var j Job
			set(&j, n)
			if problems := j.Problems(); !hasProblem(problems, field, "at most") {
				t.Errorf("%s = %d: %v; want a problem that names the limit", field, n, problems)
			}
		}
	}
	if problems := (Workers{Min: 1, Max: 1 << 62}).Problems(); !hasProblem(problems, "workers.max", "at most 99999") {
		t.Errorf("%v; want a problem that names the limit", problems)
	}
}

func hasProblem(problems []Problem, field, text string) bool {
	for _, p := range problems {
		if p.Field == field && strings.Contains(p.Message, text) {
			return true
		}
	}
	return false
}
