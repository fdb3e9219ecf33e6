package checkpointage_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/checkpointage"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func drawRule(t *rapid.T) checkpointage.Rule {
	return checkpointage.Rule{
		Step: time.Duration(rapid.Int64Range(int64(time.Second), int64(time.Hour)).Draw(t, "step")),
		Max:  rapid.Int32Range(1, 1000).Draw(t, "max"),
		Hold: time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "hold")),
	}
}

func TestTheBoostCountsWholeStepsOfUnsavedTime(t *testing.T) {
	rule := checkpointage.Rule{Step: 5 * time.Minute, Max: 24, Hold: time.Minute}
	at := start.Add
	holds := checkpointage.Workload{Holds: true, Since: start}
	with := func(w checkpointage.Workload, change func(*checkpointage.Workload)) checkpointage.Workload {
		change(&w)
		return w
	}
	for name, c := range map[string]struct {
		now  time.Duration
		w    checkpointage.Workload
		want int32
	}{
		"just admitted":                    {0, holds, 0},
		"almost a step":                    {5*time.Minute - 1, holds, 0},
		"a step":                           {5 * time.Minute, holds, 1},
		"many steps":                       {52 * time.Minute, holds, 10},
		"beyond the maximum":               {time.Hour * 24 * 365, holds, 24},
		"with a checkpoint":                {52 * time.Minute, with(holds, func(w *checkpointage.Workload) { w.Checkpoint = at(46 * time.Minute) }), 1},
		"with one from an earlier run":     {52 * time.Minute, with(holds, func(w *checkpointage.Workload) { w.Checkpoint = at(-time.Hour) }), 10},
		"with one from the future":         {52 * time.Minute, with(holds, func(w *checkpointage.Workload) { w.Checkpoint = at(time.Hour) }), 0},
		"without quota":                    {52 * time.Minute, checkpointage.Workload{Since: start, Boost: 7, Changed: at(52 * time.Minute)}, 0},
		"changed a moment ago":             {52 * time.Minute, with(holds, func(w *checkpointage.Workload) { w.Boost, w.Changed = 3, at(52*time.Minute-time.Second) }), 3},
		"changed some time ago":            {52 * time.Minute, with(holds, func(w *checkpointage.Workload) { w.Boost, w.Changed = 3, at(51*time.Minute) }), 10},
		"a little below its own step":      {49 * time.Minute, with(holds, func(w *checkpointage.Workload) { w.Boost = 10 }), 10},
		"more than a little below":         {48 * time.Minute, with(holds, func(w *checkpointage.Workload) { w.Boost = 10 }), 9},
		"a value that is not of this rule": {time.Minute, with(holds, func(w *checkpointage.Workload) { w.Boost, w.Changed = -500, at(time.Minute) }), 0},
	} {
		if got := rule.Decide(at(c.now), c.w); got != c.want {
			t.Errorf("%s: the boost is %d, want %d", name, got, c.want)
		}
	}
}

// A Workload with more unsaved work is never the preferred victim of two that were decided alike.
func TestMoreUnsavedWorkIsNeverALesserBoost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := drawRule(t)
		now := start.Add(time.Duration(rapid.Int64Range(0, int64(100*time.Hour)).Draw(t, "now")))
		older := time.Duration(rapid.Int64Range(0, int64(100*time.Hour)).Draw(t, "older"))
		newer := time.Duration(rapid.Int64Range(0, int64(older)).Draw(t, "newer"))
		boost := rapid.Int32Range(0, rule.Max).Draw(t, "boost")
		w := checkpointage.Workload{Holds: true, Since: now.Add(-200 * time.Hour), Boost: boost}
		w.Checkpoint = now.Add(-newer)
		lesser := rule.Decide(now, w)
		w.Checkpoint = now.Add(-older)
		if greater := rule.Decide(now, w); greater < lesser {
			t.Fatalf("%s unsaved gives %d, %s gives %d", newer, lesser, older, greater)
		}
	})
}

// However a Workload runs, is evicted and writes checkpoints: the boost is within bounds, 0 without quota, and
// changes once in a Hold at most.
func TestTheBoostIsWithinBoundsAndSeldomChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := drawRule(t)
		now, w := start, checkpointage.Workload{Since: start}
		for range rapid.IntRange(1, 60).Draw(t, "moments") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(2*rule.Step+rule.Hold)).Draw(t, "passes")))
			switch rapid.IntRange(0, 3).Draw(t, "happens") {
			case 0:
				w.Checkpoint = now.Add(-time.Duration(rapid.Int64Range(0, int64(rule.Step)).Draw(t, "written")))
			case 1:
				if w.Holds = !w.Holds; w.Holds {
					w.Since, w.Changed = now, time.Time{} // a Workload that is admitted again begins anew
				}
			}
			boost := rule.Decide(now, w)
			if boost < 0 || boost > rule.Max || !w.Holds && boost != 0 {
				t.Fatalf("the boost is %d of %d, with quota: %t", boost, rule.Max, w.Holds)
			}
			if boost == w.Boost {
				continue
			}
			if w.Holds && !w.Changed.IsZero() && now.Sub(w.Changed) < rule.Hold {
				t.Fatalf("it changes from %d to %d after %s, less than %s", w.Boost, boost, now.Sub(w.Changed), rule.Hold)
			}
			w.Boost, w.Changed = boost, now
		}
	})
}

// Reported ages that differ by less than the slack, as by the clocks of two machines, change the boost once at most.
func TestAnAgeThatMovesAboutALimitChangesTheBoostOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := drawRule(t)
		rule.Hold = 0
		age := rapid.Int64Range(0, int64(rule.Step)*int64(rule.Max+2)).Draw(t, "age")
		now := start.Add(10_000 * time.Hour)
		w := checkpointage.Workload{Holds: true, Since: start.Add(-100_000 * time.Hour)}
		changes := 0
		for i := range 20 {
			jitter := rapid.Int64Range(0, int64(rule.Step)/4-1).Draw(t, "jitter")
			w.Checkpoint = now.Add(-time.Duration(age + jitter))
			boost := rule.Decide(now, w)
			if boost != w.Boost && i > 0 {
				changes++
			}
			w.Boost = boost
		}
		if changes > 1 {
			t.Fatalf("%d changes about an age of %s with steps of %s", changes, time.Duration(age), rule.Step)
		}
	})
}

func TestARuleMustLeavePriorityClassesApart(t *testing.T) {
	good := checkpointage.Rule{Step: time.Minute, Max: 24}
	for name, c := range map[string]struct {
		change     func(*checkpointage.Rule)
		priorities []int32
		want       string
	}{
		"nothing":              {func(*checkpointage.Rule) {}, nil, ""},
		"classes far apart":    {func(*checkpointage.Rule) {}, []int32{1000, 100, 100, -50}, ""},
		"classes just apart":   {func(*checkpointage.Rule) {}, []int32{100, 125}, ""},
		"classes too near":     {func(*checkpointage.Rule) {}, []int32{1000, 124, 100}, "between priorities 100 and 124"},
		"a class next to none": {func(*checkpointage.Rule) {}, []int32{10}, "between priorities 0 and 10"},
		"one below none":       {func(*checkpointage.Rule) {}, []int32{-10}, "between priorities -10 and 0"},
		"the greatest number":  {func(*checkpointage.Rule) {}, []int32{math.MaxInt32}, "too much for priority 2147483647"},
		"both ends":            {func(r *checkpointage.Rule) { r.Max = 1 << 30 }, []int32{math.MinInt32}, ""},
		"no step":              {func(r *checkpointage.Rule) { r.Step = 0 }, nil, "the step is 0s"},
		"no maximum":           {func(r *checkpointage.Rule) { r.Max = 0 }, nil, "the maximum is 0"},
		"a negative time":      {func(r *checkpointage.Rule) { r.Hold = -1 }, nil, "cannot be negative"},
	} {
		rule := good
		c.change(&rule)
		err := rule.Check(c.priorities)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if err := checkpointage.Default.Check(nil); err != nil {
		t.Error(err)
	}
}
