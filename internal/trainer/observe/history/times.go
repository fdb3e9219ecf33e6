package history

import "time"

// StepBounds are the upper bounds of the classes of step times, in seconds, from the smallest networks on one machine
// to large ones in a cluster. What is longer is of the class beyond the last.
var StepBounds = [...]float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}

// Times counts times of steps.
type Times struct {
	Counts [len(StepBounds) + 1]int64 // of each class
	Count  int64
	Sum    time.Duration
}

func (t *Times) add(d time.Duration) {
	class := 0
	for class < len(StepBounds) && d.Seconds() > StepBounds[class] {
		class++
	}
	t.Counts[class]++
	t.Count++
	t.Sum += d
}

// Mean is the mean time of a step; 0 before there is any.
func (t *Times) Mean() time.Duration {
	if t.Count == 0 {
		return 0
	}
	return t.Sum / time.Duration(t.Count)
}
