package goodput_test

import (
	"encoding/json"
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/goodput"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
)

var began = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// persisted is a split as the next master reads it.
func persisted(t rapid.TB, s *trainingjob.GoodputSplit) *trainingjob.GoodputSplit {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	read := &trainingjob.GoodputSplit{}
	if err := json.Unmarshal(text, read); err != nil {
		t.Fatal(err)
	}
	return read
}

func TestThePhasesAddUpToTheLifeOverAnyEventsAndMasters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tracker := goodput.Begin("digest", began)
		now, life, ended := began, time.Duration(0), false
		newest := tracker.Split(now)
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			apart := time.Duration(rapid.Int64Range(-int64(time.Minute), int64(12*time.Hour)).Draw(t, "apart"))
			at := now.Add(apart)
			if apart > 0 && !ended {
				life += apart
			}
			if apart > 0 {
				now = at
			}
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0:
				tracker = goodput.Resume(persisted(t, newest), "digest", at)
				if apart <= 0 { // a clock that was set back: the new master's time begins there
					now = at
				}
				if ended {
					ended = false
				}
			case 1:
				tracker.Observe(at, trainingjob.Status{Phase: trainingjob.PhaseSucceeded})
				ended = true
			default:
				tracker.Observe(at, trainingjob.Status{
					Phase: trainingjob.PhaseRunning, StepsDone: rapid.Int64Range(0, 9).Draw(t, "step"),
					GoodputSplit: &trainingjob.GoodputSplit{Phase: rapid.SampledFrom(trainingjob.GoodputPhases()).Draw(t, "phase")},
				})
				ended = false
			}
			newest = tracker.Split(now)
			var sum time.Duration
			for phase, seconds := range newest.Seconds {
				if seconds < 0 {
					t.Fatalf("%s took %g s", phase, seconds)
				}
				sum += time.Duration(seconds*float64(time.Second) + 0.5)
			}
			if sum != life || len(newest.Seconds) != 6 {
				t.Fatalf("%v add up to %s of a life of %s", newest.Seconds, sum, life)
			}
			if newest.UnobservedSeconds > newest.Seconds[trainingjob.GoodputRecovering] {
				t.Fatalf("%g s are not observed, of %v", newest.UnobservedSeconds, newest.Seconds)
			}
		}
	})
}

func TestWhatALaterMasterRepeatsIsRecomputing(t *testing.T) {
	at := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
	status := func(phase trainingjob.GoodputPhase, step int64) trainingjob.Status {
		return trainingjob.Status{Phase: trainingjob.PhaseRunning, StepsDone: step, GoodputSplit: &trainingjob.GoodputSplit{Phase: phase}}
	}
	first := goodput.Begin("digest", at(0))
	first.Observe(at(2), status(trainingjob.GoodputWaitingForRoom, 0))
	first.Observe(at(5), status(trainingjob.GoodputComputing, 0))
	first.Observe(at(15), status(trainingjob.GoodputComputing, 100))
	second := goodput.Resume(persisted(t, first.Split(at(15))), "digest", at(22))
	second.Observe(at(23), status(trainingjob.GoodputComputing, 60)) // from the checkpoint of step 60
	second.Observe(at(27), status(trainingjob.GoodputComputing, 100))
	second.Observe(at(30), status(trainingjob.GoodputEvaluating, 130))
	second.Observe(at(31), status(trainingjob.GoodputSaving, 130))
	second.Observe(at(33), trainingjob.Status{Phase: trainingjob.PhaseSucceeded})
	got := second.Split(at(99))
	want := map[trainingjob.GoodputPhase]float64{
		trainingjob.GoodputComputing: 13, trainingjob.GoodputWaitingForRoom: 3, trainingjob.GoodputRecovering: 2 + 7 + 1,
		trainingjob.GoodputRecomputing: 4, trainingjob.GoodputEvaluating: 1, trainingjob.GoodputSaving: 2,
	}
	if !maps.Equal(got.Seconds, want) || got.UnobservedSeconds != 7 || got.Phase != "" || got.HighestStep != 130 {
		t.Errorf("%+v, want %v", got, want)
	}
	if other := goodput.Resume(got, "another", at(99)); other.Split(at(99)).Seconds[trainingjob.GoodputComputing] != 0 {
		t.Error("the life of a job with another digest is continued")
	}
}

func TestWhatIsReportedIsNotTrusted(t *testing.T) {
	tracker := goodput.Resume(&trainingjob.GoodputSplit{
		Seconds:           map[trainingjob.GoodputPhase]float64{trainingjob.GoodputComputing: -5, trainingjob.GoodputSaving: 1e300, "idle": 7},
		UnobservedSeconds: 9, HighestStep: -3,
	}, "", began)
	s := tracker.Split(began)
	if s.Seconds[trainingjob.GoodputComputing] != 0 || s.Seconds[trainingjob.GoodputSaving] < 0 || s.UnobservedSeconds != 0 || s.HighestStep != 0 || len(s.Seconds) != 6 {
		t.Errorf("%+v", s)
	}
}

func TestAWaitingJobWaitsForRoomWhilePodsOfItsMinimumDoNotRun(t *testing.T) {
	workers := func(states ...coordinator.WorkerState) (all []coordinator.WorkerStatus) {
		for i, s := range states {
			all = append(all, coordinator.WorkerStatus{Worker: i, State: s})
		}
		return all
	}
	const pending, starting, joining, ready = coordinator.WorkerPending, coordinator.WorkerStarting, coordinator.WorkerJoining, coordinator.WorkerReady
	for name, c := range map[string]struct {
		phase   coordinator.Phase
		workers []coordinator.WorkerStatus
		want    trainingjob.GoodputPhase
	}{
		"no room for one of two":       {coordinator.Waiting, workers(ready, pending), trainingjob.GoodputWaitingForRoom},
		"the minimum starts":           {coordinator.Waiting, workers(starting, joining, pending), trainingjob.GoodputRecovering},
		"the minimum is ready":         {coordinator.Running, workers(ready, ready, pending), trainingjob.GoodputComputing},
		"an evaluation":                {coordinator.Evaluating, workers(ready, pending), trainingjob.GoodputEvaluating},
		"an evaluation by nobody":      {coordinator.Evaluating, workers(starting, starting), trainingjob.GoodputRecovering},
		"an evaluation without room":   {coordinator.Evaluating, workers(pending, pending), trainingjob.GoodputWaitingForRoom},
		"the model":                    {coordinator.Saving, nil, trainingjob.GoodputSaving},
		"a full disk":                  {coordinator.CannotSave, nil, trainingjob.GoodputSaving},
		"a master that was stopped":    {coordinator.Done, nil, trainingjob.GoodputRecovering},
		"before its pods are observed": {coordinator.Waiting, nil, trainingjob.GoodputRecovering},
	} {
		if got := goodput.PhaseOf(coordinator.Status{Phase: c.phase, Min: 2, Workers: c.workers}); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
