package worker

import "github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/schedule"

const (
	// aheadRanges is how many ranges are read ahead: while several are computed there is time to read a chunk with
	// many.
	aheadRanges = 4
	// aheadSteps bounds the steps in which they are looked for, where one range makes many steps.
	aheadSteps = 256
)

// lookahead follows the schedule and prefetches the data of the next steps: of all virtual workers, since this worker
// may have to take over any of them. The zero value is at the beginning.
type lookahead struct {
	step     int64      // the current one
	next     int64      // the first that was not looked up
	upcoming []upcoming // distinct ranges in the order of their first steps
}

type upcoming struct {
	step int64
	r    schedule.Range
}

// follow prefetches the ranges of the step after step, and of later steps up to aheadRanges ranges. A range that is not
// accepted is requested again for the next step.
func (l *lookahead) follow(step int64, s *schedule.Schedule, prefetch func(file int, lo, hi int64) (taken bool)) {
	if l.next <= step || step < l.step { // the beginning, or a jump in the schedule
		l.next, l.upcoming = step+1, l.upcoming[:0]
	}
	l.step = step
	passed := 0
	for passed < len(l.upcoming) && l.upcoming[passed].step <= step {
		passed++
	}
	l.upcoming = append(l.upcoming[:0], l.upcoming[passed:]...)
	for _, u := range l.upcoming { // the next step again: it may not have been accepted, or may have been evicted
		if u.step == step+1 {
			prefetch(u.r.File, u.r.Lo, u.r.Hi)
		}
	}
	for last := min(s.Steps()-1, step+aheadSteps-1); l.next <= last && (l.next == step+1 || len(l.upcoming) < aheadRanges); l.next++ {
		for _, m := range s.Step(l.next).Minibatches {
			if n := len(l.upcoming); n > 0 && l.upcoming[n-1].r == m.Range {
				continue
			}
			if !prefetch(m.Range.File, m.Range.Lo, m.Range.Hi) {
				return
			}
			l.upcoming = append(l.upcoming, upcoming{l.next, m.Range})
		}
	}
}
