package history

import (
	"slices"
	"time"
)

// A series begins with fine points; when there are too many, two neighbours become one, so that a run of a month has
// as many as one of an hour.
const (
	mostPoints = 512
	finest     = 250 * time.Millisecond
)

// Point is the sum of what was published in a stretch of time.
type Point struct {
	Steps   int64
	Records int64
	LossSum float64 // over the records
}

func (p *Point) add(q Point) {
	p.Steps += q.Steps
	p.Records += q.Records
	p.LossSum += q.LossSum
}

// Loss is the mean over the records; false without any.
func (p Point) Loss() (float64, bool) { return p.LossSum / float64(p.Records), p.Records > 0 }

// Series is what was published over time: point i is of the time from i × Width to (i+1) × Width.
type Series struct {
	Width  time.Duration
	Points []Point
}

func newSeries() Series { return Series{Width: finest} }

func (s *Series) clone() Series { return Series{Width: s.Width, Points: slices.Clone(s.Points)} }

// add adds to the point of a time, which is never before the last one's.
func (s *Series) add(at time.Duration, p Point) {
	for int(at/s.Width) >= mostPoints {
		s.halve()
	}
	i := int(at / s.Width)
	for len(s.Points) <= i {
		s.Points = append(s.Points, Point{})
	}
	s.Points[i].add(p)
}

func (s *Series) halve() { *s = s.Grouped(2) }

// Grouped is the series with every n neighbours added up.
func (s *Series) Grouped(n int) Series {
	out := Series{Width: time.Duration(n) * s.Width, Points: make([]Point, (len(s.Points)+n-1)/n)}
	for i, p := range s.Points {
		out.Points[i/n].add(p)
	}
	return out
}

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
