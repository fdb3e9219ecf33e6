// Package schedule defines which records every virtual worker computes in every step, as a pure function of the job and
// the step number. Therefore the step number is the whole progress of a run: a restart needs no list of completed work,
// and no record is lost or counted twice, whatever happens to workers.
//
// Files are cut into ranges of RecordsPerTask records that never span files. Each epoch shuffles the ranges, and the
// records inside each range, with generators keyed by (seed, epoch) and (seed, epoch, range). Ranges in that order are
// cut into minibatches that never span ranges; step s of the epoch takes minibatches sK … sK+K−1, and virtual worker v
// computes the v-th of them.
package schedule

import (
	"errors"
	"fmt"
	"sort"
	"sync"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/philox"
	"github.com/elastic-training/terraform-provider-elastic/internal/wording"
)

// Params are the numbers of a job that decide its schedule. All but Seed are at least 1.
type Params struct {
	Seed           uint64
	Epochs         int
	MinibatchSize  int // records of a minibatch; the last of a range may have fewer
	GradsToWait    int // K: minibatches of a step; the last step of an epoch may have fewer
	RecordsPerTask int // records of a range; the last of a file may have fewer
}

// ErrNoRecords is returned for data without a single record.
var ErrNoRecords = errors.New("the training data contains no records")

// Range is a run of records of one file: Lo ≤ record < Hi.
type Range struct {
	File   int
	Lo, Hi int64
}

// Len is the number of records in the range.
func (r Range) Len() int { return int(r.Hi - r.Lo) }

// Minibatch is what one virtual worker computes in one step.
type Minibatch struct {
	Range   Range
	Records []int64 // of the range's file, in order
}

// Step is one model update.
type Step struct {
	Epoch       int
	Minibatches []Minibatch // by virtual worker
	Records     int         // in all of them
}

// Schedule is the plan of a job. It is safe for concurrent use.
type Schedule struct {
	p            Params
	ranges       []Range
	minibatches  int // of an epoch
	stepsInEpoch int64

	mu     sync.Mutex
	recent [2]*epoch // the current epoch, and the one before or after it
}

// epoch is the order of one epoch.
type epoch struct {
	number int
	order  []int // positions → ranges
	first  []int // position → number of its first minibatch; one more entry for the end
}

// New plans a job over files with the given numbers of records.
func New(p Params, files []int64) (*Schedule, error) {
	if p.Epochs < 1 || p.MinibatchSize < 1 || p.GradsToWait < 1 || p.RecordsPerTask < 1 {
		return nil, fmt.Errorf("epochs (%d), minibatch size (%d), grads to wait (%d) and records per task (%d) must be at least 1", p.Epochs, p.MinibatchSize, p.GradsToWait, p.RecordsPerTask)
	}
	ranges, err := Cut(files, p.RecordsPerTask)
	if err != nil {
		return nil, err
	}
	s := &Schedule{p: p, ranges: ranges}
	if len(s.ranges) == 0 {
		return nil, ErrNoRecords
	}
	for _, r := range s.ranges {
		if r.Len() > maxRangeRecords {
			return nil, fmt.Errorf("records per task (%d) make a range of %s records, which are shuffled together and may be at most %s; choose fewer records per task",
				p.RecordsPerTask, wording.Count(int64(r.Len())), wording.Count(maxRangeRecords))
		}
		s.minibatches += ceil(r.Len(), p.MinibatchSize)
	}
	s.stepsInEpoch = int64(ceil(s.minibatches, p.GradsToWait))
	return s, nil
}

// The limits of a schedule that fits a small machine's memory. An epoch keeps the order of all its ranges, with what
// they are made of 56 bytes each. A range is shuffled as a whole for each of its minibatches, at 8 bytes a record.
const (
	maxRanges       = 10_000_000
	maxRangeRecords = 16_777_216
)

// Cut divides files into ranges of at most size records, in file order. It fails where they would be too many.
func Cut(files []int64, size int) ([]Range, error) {
	n := int64(0)
	for _, records := range files {
		n += (records + int64(size) - 1) / int64(size)
	}
	if n > maxRanges {
		return nil, fmt.Errorf("records per task (%d) cut the data into %s ranges, of which there may be at most %s; choose more records per task",
			size, wording.Count(n), wording.Count(maxRanges))
	}
	var ranges []Range
	for file, records := range files {
		for lo := int64(0); lo < records; lo += int64(size) {
			ranges = append(ranges, Range{File: file, Lo: lo, Hi: min(lo+int64(size), records)})
		}
	}
	return ranges, nil
}

func ceil(a, b int) int { return (a + b - 1) / b }

// Ranges is the number of ranges of an epoch.
func (s *Schedule) Ranges() int { return len(s.ranges) }

// MinibatchesPerEpoch is the number of gradients of an epoch.
func (s *Schedule) MinibatchesPerEpoch() int { return s.minibatches }

// StepsPerEpoch is the number of updates of an epoch.
func (s *Schedule) StepsPerEpoch() int64 { return s.stepsInEpoch }

// Steps is the number of updates of the job.
func (s *Schedule) Steps() int64 { return s.stepsInEpoch * int64(s.p.Epochs) }

// Epoch is the epoch of a step, from 0.
func (s *Schedule) Epoch(step int64) int { return int(step / s.stepsInEpoch) }

// Minibatches is the number of virtual workers of a step: K, or what is left in an epoch's last step.
func (s *Schedule) Minibatches(step int64) int {
	return min(s.p.GradsToWait, s.minibatches-int(step%s.stepsInEpoch)*s.p.GradsToWait)
}

// Step lists the records of a step, 0 ≤ step < Steps.
func (s *Schedule) Step(step int64) Step {
	if step < 0 || step >= s.Steps() {
		panic(fmt.Sprintf("schedule: step %d of %d", step, s.Steps()))
	}
	e := s.epoch(s.Epoch(step))
	first := int(step%s.stepsInEpoch) * s.p.GradsToWait
	out := Step{Epoch: e.number, Minibatches: make([]Minibatch, s.Minibatches(step))}
	for v := range out.Minibatches {
		out.Minibatches[v] = s.minibatch(e, first+v)
		out.Records += len(out.Minibatches[v].Records)
	}
	return out
}

// minibatch is the m-th of an epoch.
func (s *Schedule) minibatch(e *epoch, m int) Minibatch {
	position := sort.SearchInts(e.first, m+1) - 1
	index := e.order[position]
	r := s.ranges[index]
	shuffled := philox.Shuffle(s.p.Seed, philox.Records, philox.Index{uint32(e.number), uint32(index)}, r.Len())
	from := (m - e.first[position]) * s.p.MinibatchSize
	part := shuffled[from:min(from+s.p.MinibatchSize, len(shuffled))]
	records := make([]int64, len(part))
	for i, offset := range part {
		records[i] = r.Lo + int64(offset)
	}
	return Minibatch{Range: r, Records: records}
}

// epoch returns the order of an epoch, computed once while it is in use.
func (s *Schedule) epoch(number int) *epoch {
	s.mu.Lock()
	defer s.mu.Unlock()
	slot := &s.recent[number%len(s.recent)]
	if *slot == nil || (*slot).number != number {
		e := &epoch{number: number, order: philox.Shuffle(s.p.Seed, philox.Ranges, philox.Index{uint32(number)}, len(s.ranges))}
		e.first = make([]int, len(e.order)+1)
		for i, r := range e.order {
			e.first[i+1] = e.first[i] + ceil(s.ranges[r].Len(), s.p.MinibatchSize)
		}
		*slot = e
	}
	return *slot
}
