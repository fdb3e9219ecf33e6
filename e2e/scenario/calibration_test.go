package scenario

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

func TestCalibrationCancelsTheFixedCostOfARun(t *testing.T) {
	start, epoch := 700*time.Millisecond, 900*time.Millisecond
	p := newCalibration(start+shortRunEpochs*epoch, start+longRunEpochs*epoch)
	if p.epoch != epoch {
		t.Errorf("an epoch takes %s, want %s", p.epoch, epoch)
	}
	if got := p.epochs(time.Minute); got != 67 {
		t.Errorf("%d epochs for a minute, want 67", got)
	}
}

func TestCalibrationToleratesASlowShortRun(t *testing.T) {
	const epoch = time.Second
	for _, short := range []time.Duration{2 * epoch, 3 * epoch, 5 * epoch} {
		if got := newCalibration(short, longRunEpochs*epoch).epochs(time.Minute); got > 80 {
			t.Errorf("%d epochs of %s for a minute after a short run of %s", got, epoch, short)
		}
	}
}

func TestALowJobLastsHalfAsLongAsCalibratedOnAMachineThatHasBecomeFast(t *testing.T) {
	p := calibration{epoch: 8 * time.Second}
	const wanted = 80 * time.Second
	if lasts := time.Duration(p.epochs(wanted)*stepsPerEpoch) * p.pace(); lasts < wanted/2 {
		t.Errorf("it lasts %s at least, which is less than half of %s", lasts, wanted)
	}
}

func TestCalibrationKeepsAMinimumOfEpochsOnASlowMachine(t *testing.T) {
	if got := (calibration{epoch: 5 * time.Minute}).epochs(time.Minute); got != minLowEpochs {
		t.Errorf("%d epochs of the low job, want %d", got, minLowEpochs)
	}
}

func TestCalibrationGivesEpochsToBothJobsForAnyMeasurements(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		duration := func(name string) time.Duration {
			return time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, name))
		}
		p := newCalibration(duration("short"), duration("long"))
		if low := p.epochs(duration("wanted")); low < 1 {
			t.Errorf("the low job would make %d epochs", low)
		}
		wanted, remaining := duration("high wanted"), duration("remaining")
		high := highEpochs(p, wanted, remaining)
		if high < 1 {
			t.Errorf("the high job would make %d epochs", high)
		}
		if high > 1 && time.Duration(high)*2*p.epoch > remaining/2 {
			t.Errorf("%d epochs of %s, taken twice, leave the low job too little of %s", high, p.epoch, remaining)
		}
	})
}

func TestRemainingTimeFollowsTheSpeedOfTheReports(t *testing.T) {
	start := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
	report := func(second int, step int64) eventlog.Point {
		return eventlog.Point{
			Time:   start.Add(time.Duration(second) * time.Second),
			Status: trainingjob.Status{StepsDone: step, StepsTotal: 1000},
		}
	}
	points := []eventlog.Point{report(0, 0), report(5, 100), report(10, 200)}
	if got := remainingAt(points, start.Add(11*time.Second)); got != 39*time.Second {
		t.Errorf("remaining %s, want 39s: 800 steps at 20 a second from the last report", got)
	}
	if got := remainingAt(points[:2], start); got != 0 {
		t.Errorf("remaining %s from one report, want 0: one report gives no speed", got)
	}
}

func TestScenarioLengthIsReportedInWholeMinutes(t *testing.T) {
	for name, c := range map[string]struct {
		epoch  time.Duration
		epochs int
		want   int
	}{
		"a fast machine":               {time.Second, 60, 4},
		"one with few and long epochs": {30 * time.Second, 4, 7},
		"next to nothing":              {time.Millisecond, 4, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := minutes((calibration{epoch: c.epoch}).scenarioLength(c.epochs)); got != c.want {
				t.Errorf("%d minutes, not %d", got, c.want)
			}
		})
	}
}
