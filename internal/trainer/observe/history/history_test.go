package history_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/history"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/history/historytest"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
)

func TestARunOfAnyLengthIsKeptInAFewPointsThatAddUpToTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := history.New(history.Job{}, historytest.Began)
		at := historytest.Began
		var steps, records int64
		var loss float64
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			at = at.Add(time.Duration(rapid.Int64Range(0, int64(72*time.Hour)).Draw(t, "apart")))
			s := history.Step{Records: rapid.IntRange(1, 100).Draw(t, "records"), LossSum: float64(rapid.IntRange(0, 1000).Draw(t, "loss"))}
			h.OnStep(at, s)
			steps, records, loss = steps+1, records+int64(s.Records), loss+s.LossSum
		}
		var sum history.Point
		for _, p := range h.Series.Points {
			sum.Steps, sum.Records, sum.LossSum = sum.Steps+p.Steps, sum.Records+p.Records, sum.LossSum+p.LossSum
		}
		if sum.Steps != steps || sum.Records != records || sum.LossSum != loss {
			t.Fatalf("the points are %+v, of %d steps, %d records and a loss of %g", sum, steps, records, loss)
		}
		if n := len(h.Series.Points); n > 512 {
			t.Fatalf("%d points", n)
		}
		if last := time.Duration(len(h.Series.Points)) * h.Series.Width; last < h.Now || last-h.Series.Width > h.Now {
			t.Fatalf("the last point ends at %s, and it is %s", last, h.Now)
		}
	})
}

func TestManyWorkersNoticesAndPhasesAreForgottenOldestFirst(t *testing.T) {
	h := history.New(history.Job{}, historytest.Began)
	at := historytest.Began
	for id := range 1000 {
		at = at.Add(time.Second)
		phase := []trainingjob.Phase{trainingjob.PhaseRunning, trainingjob.PhaseWaiting}[id%2]
		h.OnStatus(at, trainingjob.Status{Phase: phase, Workers: []trainingjob.WorkerStatus{{ID: 0, State: "ready"}, {ID: id + 1, State: "ready"}}})
		h.OnNotice(at, coordinator.Notice{Reason: "WorkerJoined"})
	}
	if len(h.Workers) > 200 || h.Dropped+len(h.Workers) != 1001 || len(h.Notices) > 200 || len(h.Phases) > 200 {
		t.Errorf("%d lives and %d dropped, %d notices, %d phases", len(h.Workers), h.Dropped, len(h.Notices), len(h.Phases))
	}
	if first := h.Workers[0]; first.Worker != 0 || first.Ended {
		t.Errorf("worker 0 is still there, and the first that is kept is %d", first.Worker)
	}
	if last := h.Workers[len(h.Workers)-1]; last.Worker != 1000 {
		t.Errorf("the newest worker that is kept is %d", last.Worker)
	}
}

func TestAWorkerHasOneMarkForEachTimeThatItWasTakenAway(t *testing.T) {
	for name, test := range map[string]struct {
		events              []coordinator.Event
		want                []history.Kind
		preemptions, losses int64
	}{
		"preempted: reported by its pod, then its stream ends, then its pod": {
			events: []coordinator.Event{
				coordinator.PodChanged{Worker: 1, State: coordinator.PodRunning, Terminating: true, Preempted: true},
				coordinator.Left{Worker: 1},
				coordinator.Lost{Worker: 1, Reason: coordinator.LostInOrder},
				coordinator.PodChanged{Worker: 1, State: coordinator.PodEnded, Disrupted: true},
			},
			want: []history.Kind{history.Preempted}, preemptions: 1,
		},
		"preempted: its stream ends first": {
			events: []coordinator.Event{
				coordinator.Lost{Worker: 1, Reason: "was lost"},
				coordinator.PodChanged{Worker: 1, State: coordinator.PodRunning, Terminating: true, Preempted: true},
			},
			want: []history.Kind{history.Preempted}, preemptions: 1,
		},
		"killed": {
			events: []coordinator.Event{
				coordinator.Lost{Worker: 1, Reason: "was lost"}, coordinator.PodChanged{Worker: 1, State: coordinator.PodEnded, Disrupted: true},
			},
			want: []history.Kind{history.Lost}, losses: 1,
		},
		"failed before it ever joined": {
			events: []coordinator.Event{coordinator.PodChanged{Worker: 1, State: coordinator.PodEnded, Reason: "exit code 1"}},
			want:   []history.Kind{history.Failed}, losses: 1,
		},
		"deleted by somebody": {
			events: []coordinator.Event{coordinator.PodChanged{Worker: 1, State: coordinator.PodRunning, Terminating: true}},
			want:   []history.Kind{history.Deleted}, losses: 1,
		},
		"asked to go by its own master": {
			events: []coordinator.Event{coordinator.Left{Worker: 1}, coordinator.PodChanged{Worker: 1, State: coordinator.PodEnded, Disrupted: true}},
		},
		"unknown": {events: []coordinator.Event{coordinator.Lost{Worker: 7, Reason: "was lost"}}},
	} {
		t.Run(name, func(t *testing.T) {
			h := history.New(history.Job{}, historytest.Began)
			at := historytest.Began.Add(time.Second)
			h.OnStatus(at, trainingjob.Status{Phase: trainingjob.PhaseRunning, Workers: []trainingjob.WorkerStatus{{ID: 1, State: "ready"}}})
			for _, e := range test.events {
				h.OnEvent(at, e)
			}
			h.OnStatus(at.Add(time.Second), trainingjob.Status{Phase: trainingjob.PhaseRunning})
			var kinds []history.Kind
			for _, m := range h.Workers[0].Interruptions {
				kinds = append(kinds, m.Kind)
			}
			if !slices.Equal(kinds, test.want) || h.Preemptions != test.preemptions || h.Losses != test.losses {
				t.Errorf("%v, %d preemptions, %d losses", kinds, h.Preemptions, h.Losses)
			}
			if !h.Workers[0].Ended {
				t.Error("it is still there")
			}
		})
	}
}

// steady reports n ready workers of so many, and steps of the given time each.
func steady(h *history.History, at time.Time, phase trainingjob.Phase, n, steps int, each time.Duration) time.Time {
	var workers []trainingjob.WorkerStatus
	for id := range n {
		workers = append(workers, trainingjob.WorkerStatus{ID: id, State: "ready"})
	}
	h.OnStatus(at, trainingjob.Status{Phase: phase, Workers: workers})
	for range steps {
		at = at.Add(each)
		h.OnStep(at, history.Step{Records: 10})
	}
	h.OnStatus(at, trainingjob.Status{Phase: phase, Workers: workers})
	return at
}

func TestGoodputIsTheShareOfUndisturbedWorkInTheTimeThatWorkersLived(t *testing.T) {
	near := func(t *testing.T, h *history.History, want float64) {
		t.Helper()
		if got := h.Goodput(); got == nil || *got < want-0.005 || *got > want+0.005 {
			shown := "nothing"
			if got != nil {
				shown = time.Duration(*got * float64(time.Second)).String()
			}
			t.Errorf("%s, want %g", shown, want)
		}
	}
	begin := func() *history.History { return history.New(history.Job{}, historytest.Began) }
	t.Run("it is 1 while nothing disturbs", func(t *testing.T) {
		h := begin()
		steady(h, h.Began, trainingjob.PhaseRunning, 4, 100, 50*time.Millisecond)
		near(t, h, 1)
	})
	t.Run("half the workers at half the speed waste nothing", func(t *testing.T) {
		h := begin()
		at := steady(h, h.Began, trainingjob.PhaseRunning, 4, 100, 50*time.Millisecond)
		steady(h, at, trainingjob.PhaseRunning, 2, 100, 100*time.Millisecond)
		near(t, h, 1)
	})
	t.Run("steps of thrice the time for a quarter of them are two thirds", func(t *testing.T) {
		h := begin()
		at := steady(h, h.Began, trainingjob.PhaseRunning, 4, 75, 50*time.Millisecond)
		steady(h, at, trainingjob.PhaseRunning, 4, 25, 150*time.Millisecond)
		near(t, h, 100.0/150)
	})
	t.Run("waiting with a worker that lives is a loss", func(t *testing.T) {
		near(t, waited(10*time.Second), 2*10.0/(2*10+1*10))
	})
	t.Run("evaluating is none", func(t *testing.T) {
		h := begin()
		at := steady(h, h.Began, trainingjob.PhaseRunning, 2, 100, 100*time.Millisecond)
		at = steady(h, at, trainingjob.PhaseEvaluating, 2, 0, 0).Add(time.Hour)
		steady(h, at, trainingjob.PhaseRunning, 2, 10, 100*time.Millisecond)
		near(t, h, 1)
	})
	t.Run("it cannot be said of a few steps", func(t *testing.T) {
		h := begin()
		steady(h, h.Began, trainingjob.PhaseRunning, 2, 10, time.Second)
		if got := h.Goodput(); got != nil {
			t.Errorf("%g", *got)
		}
	})
}

// waited is of a job that trained with two workers for ten seconds, then waited with one of them.
func waited(wait time.Duration) *history.History {
	h := history.New(history.Job{}, historytest.Began)
	at := steady(h, h.Began, trainingjob.PhaseRunning, 2, 100, 100*time.Millisecond)
	at = steady(h, at, trainingjob.PhaseWaiting, 1, 0, 0).Add(wait)
	steady(h, at, trainingjob.PhaseWaiting, 1, 0, 0)
	return h
}

func TestWaitsAreNoTimesOfSteps(t *testing.T) {
	h := waited(time.Hour)
	at := h.Began.Add(2 * time.Hour)
	steady(h, at, trainingjob.PhaseRunning, 2, 10, 100*time.Millisecond)
	if mean := h.Times.Mean(); mean != 100*time.Millisecond || h.Times.Count != 110 {
		t.Errorf("%d steps of %s", h.Times.Count, mean)
	}
}

func TestASnapshotStaysAsItWas(t *testing.T) {
	r := history.NewRecorder(history.Job{Name: "job"})
	report := func(state string) {
		r.OnStatus(trainingjob.Status{Phase: trainingjob.PhaseRunning, Workers: []trainingjob.WorkerStatus{{ID: 0, State: state}}})
		r.OnStep(history.Step{Records: 1})
		r.OnNotice(coordinator.Notice{Reason: "WorkerJoined"})
	}
	report("joining")
	first, same := r.Snapshot(), r.Snapshot()
	for range 100 {
		report("ready")
		report("joining")
	}
	if !reflect.DeepEqual(first, same) {
		t.Error("a snapshot has changed")
	}
	if len(r.Snapshot().Workers[0].Intervals) < 3 {
		t.Error("nothing was recorded")
	}
}

func TestTheStoryHasWhatRunsHave(t *testing.T) {
	h := historytest.NewRun(4, 5*time.Minute).Succeed()
	if h.Preemptions < 2 || h.Losses < 4 || h.Steps < 700 || h.Goodput() == nil || *h.Goodput() < 0.5 {
		t.Errorf("%d preemptions, %d losses, %d steps, goodput %v", h.Preemptions, h.Losses, h.Steps, h.Goodput())
	}
}
