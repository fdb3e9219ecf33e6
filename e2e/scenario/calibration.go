package scenario

import (
	"math"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

// calibration is how long one epoch takes on this machine with two workers.
type calibration struct {
	epoch time.Duration
}

// Epochs of the two calibration runs.
const (
	shortRunEpochs = 1
	longRunEpochs  = 3
)

// newCalibration derives the duration of an epoch from a short and a long run, so that the fixed cost of a run cancels
// out. On a busy machine the short run may take as long as the long one. Their difference is meaningless then, and
// would make the scenario extremely long; but at least three quarters of the long run is training.
func newCalibration(short, long time.Duration) calibration {
	perEpoch := (long - short) / (longRunEpochs - shortRunEpochs)
	return calibration{epoch: max(perEpoch, long*3/4/longRunEpochs, time.Millisecond)}
}

// minLowEpochs keeps the low job longer than the high one on any machine: the high job makes at least one epoch, with
// one worker, while the low one continues at half its speed, and the low job must then have time to grow back.
const minLowEpochs = 4

// epochs is the number of epochs of the low job that take about that long.
func (c calibration) epochs(lasts time.Duration) int {
	return max(minLowEpochs, int(math.Round(float64(lasts)/float64(c.epoch))))
}

// pace is how long each gradient of the jobs lasts at least: half of what it took in the calibration. Otherwise the low job
// of a calibration on a busy machine is over before the high one comes, when the machine is busy no more.
func (c calibration) pace() time.Duration { return c.epoch / stepsPerEpoch / 2 }

// scenarioLength is about how long the scenario takes from the measurement on: the low job's training, which lasts
// about twice as long as undisturbed, the undisturbed run, and what terraform and the pods' starts take.
func (c calibration) scenarioLength(lowEpochs int) time.Duration {
	return 3*time.Duration(lowEpochs)*c.epoch + 30*time.Second
}

// minutes is a duration in whole minutes, at least one.
func minutes(d time.Duration) int { return max(1, int(math.Round(d.Minutes()))) }

// highShare is the most that the high job may take of the low job's remaining time: the low job, slowed down meanwhile,
// must have time to grow back.
const highShare = 0.3

// highEpochs is the number of epochs of the high job. It has one worker where the calibration had two, and shares the
// machine, so each of its epochs counts as two.
func highEpochs(c calibration, wanted, lowRemaining time.Duration) int {
	lasts := min(wanted, time.Duration(highShare*float64(lowRemaining)))
	return max(1, int(float64(lasts)/float64(2*c.epoch)))
}

// remainingAt is how long a job still takes, at the average speed between its first and last report of steps.
func remainingAt(points []eventlog.Point, now time.Time) time.Duration {
	var first, last *eventlog.Point
	for i := range points {
		if points[i].Status.StepsDone == 0 {
			continue
		}
		if first == nil {
			first = &points[i]
		}
		last = &points[i]
	}
	if first == nil || last.Status.StepsDone <= first.Status.StepsDone {
		return 0
	}
	perStep := float64(last.Time.Sub(first.Time)) / float64(last.Status.StepsDone-first.Status.StepsDone)
	end := last.Time.Add(time.Duration(perStep * float64(last.Status.StepsTotal-last.Status.StepsDone)))
	return max(0, end.Sub(now))
}
