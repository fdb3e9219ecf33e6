package scenario

import (
	"math"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

// pace is how long one pass over the data takes on this machine with two workers.
type pace struct {
	epoch time.Duration
}

// Epochs of the two runs that measure the pace.
const (
	shortRunEpochs = 1
	longRunEpochs  = 3
)

// paceOf derives the pace from a short and a long run, so that what every run costs once cancels out. On a busy
// machine the short one may happen to be as slow as the long one. Their difference then says nothing, and would make the
// story last for ever; but the long run is training for the most part, for three quarters at least.
func paceOf(short, long time.Duration) pace {
	perEpoch := (long - short) / (longRunEpochs - shortRunEpochs)
	return pace{epoch: max(perEpoch, long*3/4/longRunEpochs, time.Millisecond)}
}

// minLowEpochs keeps the low job longer than the high one on any machine: the high job makes one pass at least, with one
// worker, while the low one goes on at half its speed, and then there must be time left to grow back.
const minLowEpochs = 4

// epochs is how many passes of the low job last about that long.
func (p pace) epochs(lasts time.Duration) int {
	return max(minLowEpochs, int(math.Round(float64(lasts)/float64(p.epoch))))
}

// story is about how long the story takes from the measurement on: the low job's training, which lasts about twice as
// long as undisturbed, the undisturbed run, and what terraform and the pods' starts take.
func (p pace) story(lowEpochs int) time.Duration {
	return 3*time.Duration(lowEpochs)*p.epoch + 30*time.Second
}

// minutes is a duration in whole minutes, at least one.
func minutes(d time.Duration) int { return max(1, int(math.Round(d.Minutes()))) }

// highShare of the low job's remaining time is what the high job may take at most: the low job, slowed down meanwhile,
// must have time left to grow back and to use it.
const highShare = 0.3

// highEpochs is how many passes the high job makes. It has one worker where the pace was measured with two, and shares
// the machine, so one of its passes is reckoned as two.
func highEpochs(p pace, wanted, lowRemaining time.Duration) int {
	lasts := min(wanted, time.Duration(highShare*float64(lowRemaining)))
	return max(1, int(float64(lasts)/float64(2*p.epoch)))
}

// remainingAt is how long a job goes on, at the pace between its first and last report of steps done.
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
