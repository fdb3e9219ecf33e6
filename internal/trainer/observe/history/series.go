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
