package worker

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/schedule"
)

func TestEveryRangeIsRequestedBeforeItsStep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, err := schedule.New(schedule.Params{
			Seed: 1, Epochs: 2, MinibatchSize: rapid.IntRange(1, 12).Draw(t, "minibatch size"), GradsToWait: rapid.IntRange(1, 9).Draw(t, "grads to wait"),
			RecordsPerTask: rapid.IntRange(1, 30).Draw(t, "records per task"),
		}, []int64{int64(rapid.IntRange(1, 200).Draw(t, "records")), 50})
		if err != nil {
			t.Fatal(err)
		}
		var l lookahead
		requested := map[schedule.Range]bool{}
		room := 0
		prefetch := func(file int, lo, hi int64) bool {
			if room--; room < 0 {
				return false
			}
			requested[schedule.Range{File: file, Lo: lo, Hi: hi}] = true
			return true
		}
		for step := int64(0); step < s.Steps(); step++ {
			if step > 0 {
				for _, m := range s.Step(step).Minibatches {
					if !requested[m.Range] {
						t.Fatalf("step %d of %d: %v was not asked for before", step, s.Steps(), m.Range)
					}
				}
			}
			room = 1000
			l.follow(step, s, prefetch)
			if n := len(l.upcoming); n > aheadRanges+s.Minibatches(step)+9 {
				t.Fatalf("step %d: %d ranges ahead", step, n)
			}
		}
	})
}

func TestLookaheadContinuesWhereItWasRefused(t *testing.T) {
	s, err := schedule.New(schedule.Params{Seed: 1, Epochs: 1, MinibatchSize: 10, GradsToWait: 2, RecordsPerTask: 10}, []int64{1000})
	if err != nil {
		t.Fatal(err)
	}
	var l lookahead
	var requested []int64
	room := 0
	prefetch := func(_ int, lo, _ int64) bool {
		if room--; room < 0 {
			return false
		}
		requested = append(requested, lo)
		return true
	}
	room = 1
	l.follow(0, s, prefetch)
	room = 100
	l.follow(0, s, prefetch)
	for _, m := range s.Step(1).Minibatches {
		if !slices.Contains(requested, m.Range.Lo) {
			t.Errorf("%v of the next step was not asked for again", m.Range)
		}
	}
	t.Run("another place in the schedule is followed from there", func(t *testing.T) {
		for _, step := range []int64{40, 3} {
			requested = nil
			l.follow(step, s, prefetch)
			if want := s.Step(step + 1).Minibatches[0].Range.Lo; !slices.Contains(requested, want) {
				t.Errorf("step %d: %d was not asked for: %d", step, want, requested)
			}
		}
	})
}
